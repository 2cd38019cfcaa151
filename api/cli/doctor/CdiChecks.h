#pragma once

#include "api/cli/doctor/Finding.h"
#include "pool/gpu/cdi/CdiSpecs.h"

namespace hearth::cli {

/// Lists the GPUs that the machine's CDI files name so that sandboxes of the runtime `oci` can get
/// them, and the files that are refused. A missing file is no failure: only GPUs need them.
Finding checkCdi(const pool::cdi::CdiFolders& folders);

}  // namespace hearth::cli

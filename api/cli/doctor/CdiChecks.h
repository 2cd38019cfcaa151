#pragma once

#include "api/cli/doctor/Finding.h"
#include "pool/gpu/cdi/CdiSpecs.h"

namespace hearth::cli {

/// Which GPUs the machine's CDI files name so that sandboxes of the runtime `oci` can get them, and
/// which files are refused. No file at all is no failure: nothing but GPUs needs them.
Finding checkCdi(const pool::cdi::CdiFolders& folders);

}  // namespace hearth::cli

#pragma once

#include "base/Json.h"
#include "pool/image/ImageStore.h"
#include "pool/launcher/OciCommand.h"

namespace hearth::pool::launcher {

/// Returns the isolation in force on this machine, for RuntimeFacts.
Json hostFacts(const OciCommand& runtime, const image::ImageStore& images);

}  // namespace hearth::pool::launcher

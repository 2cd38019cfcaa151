#pragma once

#include <string_view>

namespace hearth::agent {

/// Writes kTrustFile: the authorities that the image itself trusts, where its system keeps them in
/// one of the usual files, and these. Only the agent can write there. False if it cannot.
bool writeTrustFile(std::string_view certificates);

}  // namespace hearth::agent

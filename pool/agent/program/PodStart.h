#pragma once

namespace hearth::agent {

/// The program's task in the init container of a Pod: copies the folder that it lies in to
/// `inside`, where the sandbox finds it, and makes the identity (see makeIdentity()). Returns the
/// exit status.
int beginPod(const char* inside, const char* identity, const char* told);

}  // namespace hearth::agent

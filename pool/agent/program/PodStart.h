#pragma once

namespace hearth::agent {

/// Does the program's task in the init container of a Pod: copies the program's own folder to
/// `inside`, where the sandbox finds it, and makes the identity (see makeIdentity()). Returns the
/// exit status.
int beginPod(const char* inside, const char* identity, const char* told);

}  // namespace hearth::agent

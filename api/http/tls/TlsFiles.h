#pragma once

#include <string>

namespace hearth::api {

/// The files of a server's certificate; both or neither.
struct TlsFiles {
    std::string certificate = {};  ///< PEM, with its chain
    std::string key = {};          ///< PEM, without a password
    bool any() const { return !certificate.empty(); }
};

}  // namespace hearth::api

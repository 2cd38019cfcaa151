#pragma once

#include <string>

#include "controller/broker/credentials/Credential.h"

namespace hearth::broker {

/// The operator's secrets: a file for each, and below `tenants/NAME/` those of a tenant. Read when
/// a request needs one, so that a file that is replaced counts from then on. Nothing is kept.
/// Thread-safe.
class SecretDirectory {
public:
    /// Empty: there are none.
    explicit SecretDirectory(std::string directory) : directory_(std::move(directory)) {}

    bool exists() const noexcept { return !directory_.empty(); }
    /// What the credential stands for now; a line's end after it is left out. Throws Refused (502)
    /// in words for whoever asked.
    std::string value(const Credential& credential) const;

private:
    const std::string directory_;
};

}  // namespace hearth::broker

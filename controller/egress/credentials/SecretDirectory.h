#pragma once

#include <string>
#include <utility>

#include "controller/egress/policy/Credential.h"

namespace hearth::egress {

/// The operator's secrets: one file each, and a tenant's below `tenants/NAME/`. A file is read
/// when a request needs it, so a replaced file counts from then on. Nothing is kept.
/// Thread-safe.
class SecretDirectory {
public:
    /// Empty: there are no secrets.
    explicit SecretDirectory(std::string directory) : directory_(std::move(directory)) {}

    bool exists() const noexcept { return !directory_.empty(); }
    /// The credential's current secret, without a final newline. Throws Refused (502) with a text
    /// for the caller.
    std::string value(const Credential& credential) const;
    /// The reason why the credential has no secret now, for an operator; "" if it has one.
    std::string lackOf(const Credential& credential) const;

private:
    enum class Lack { None, NoDirectory, NoFile, Unreadable, NoSecret };
    /// The value, or what is wrong with it.
    std::pair<std::string, Lack> read(const Credential& credential) const;

    const std::string directory_;
};

}  // namespace hearth::egress

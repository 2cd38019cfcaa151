#pragma once

#include <string>
#include <vector>

namespace hearth::pool::docker {

/// The images that this instance brought into a daemon, as names of empty files, so that a record
/// is whole or not there. Names are "NAME:DIGITS" of `hearth/NAME:DIGITS`, or "repository@sha256:…"
/// while that is being pulled. Thread-safe as the file system is.
class ImageRecords {
public:
    explicit ImageRecords(std::string folder) : folder_(std::move(folder)) {}

    /// Says so before it is brought: what a crash leaves is found.
    void add(const std::string& name) const;
    void remove(const std::string& name) const;
    std::vector<std::string> all() const;

private:
    std::string pathOf(const std::string& name) const;

    std::string folder_;
};

}  // namespace hearth::pool::docker

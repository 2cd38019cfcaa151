#pragma once

#include <string>
#include <vector>

namespace hearth::pool::docker {

/// The images that this instance brought into a daemon, stored as names of empty files, so a record
/// is complete or missing. Names are "NAME:DIGITS" of `hearth/NAME:DIGITS`, or
/// "repository@sha256:…" while that is being pulled. As thread-safe as the file system.
class ImageRecords {
public:
    explicit ImageRecords(std::string folder) : folder_(std::move(folder)) {}

    /// Called before the image is loaded or pulled, so leftovers of a crash are found.
    void add(const std::string& name) const;
    void remove(const std::string& name) const;
    std::vector<std::string> all() const;

private:
    std::string pathOf(const std::string& name) const;

    std::string folder_;
};

}  // namespace hearth::pool::docker

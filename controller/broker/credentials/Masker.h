#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hearth::broker {

/// Overwrites secrets with asterisks in bytes that pass by, however they are cut into pieces; the
/// length stays what it was. Holds back less than one secret's length. Not thread-safe.
class Masker {
public:
    /// None of them is empty.
    explicit Masker(std::vector<std::string> hidden) : hidden_(std::move(hidden)) {}

    /// What may go on now. An end that may be the beginning of a secret is kept for the next call.
    std::string pass(std::string_view bytes) { return take(bytes, false); }
    /// What was kept, when no more comes.
    std::string rest() { return take({}, true); }

private:
    std::string take(std::string_view bytes, bool last);

    const std::vector<std::string> hidden_;
    std::string kept_;    ///< as it came
    std::string masked_;  ///< the same, with what is known of it overwritten
};

}  // namespace hearth::broker

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hearth::broker {

/// Overwrites secrets with asterisks in bytes that pass by, however they are cut into pieces; the
/// length stays what it was. How much is held back depends on nothing but how long the longest
/// secret is and how long the bytes have been printable: whoever sees the pieces learns nothing
/// from them of what a secret begins with. Not thread-safe.
class Masker {
public:
    /// Printable ASCII, none of them empty.
    explicit Masker(std::vector<std::string> hidden);

    /// What may go on now. An end that could be within a secret is kept for the next call; the end
    /// of a line never is.
    std::string pass(std::string_view bytes) { return take(bytes, false); }
    /// What was kept, when no more comes.
    std::string rest() { return take({}, true); }

private:
    std::string take(std::string_view bytes, bool last);

    const std::vector<std::string> hidden_;
    std::size_t longest_ = 0;
    std::string kept_;    ///< as it came
    std::string masked_;  ///< the same, with what is known of it overwritten
};

}  // namespace hearth::broker

#pragma once

#include <atomic>
#include <string>

namespace hearth::controller {

/// Remembers in a file of its own that this instance has had a token, so that neither a lost
/// database nor an emptied configuration opens it. Changes are on disk (synced) when they return.
/// had() from any thread, the changes from one at a time.
class TokenHistory {
public:
    /// Where there is no such file, `doubtful` counts as a yes: an instance was here and its
    /// database tells nothing any more. What cannot be read is a yes. Throws std::system_error
    /// where a yes cannot be written.
    TokenHistory(std::string path, bool doubtful);

    bool had() const { return had_.load(); }
    /// Call it before a token can be used. Throws std::system_error: then there must be none.
    void remember();
    /// Writes down that there was none so far, unless something is written already. A failure is
    /// passed over: what is not written counts as doubt.
    void settle() noexcept;

private:
    void put(const char* answer);

    const std::string path_;
    bool written_ = false;
    std::atomic<bool> had_{false};
};

}  // namespace hearth::controller

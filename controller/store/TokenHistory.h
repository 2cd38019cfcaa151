#pragma once

#include <atomic>
#include <set>
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
    /// For RevokedTokens: beside its own file.
    std::string revokedPath() const;
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

/// Ids of tokens that were revoked while the disk took no change of the database: a stolen token
/// must be revocable on a full disk. The file has its blocks from the beginning and is overwritten
/// in place; room that is only given back would not do, for ext4 keeps a part of the free blocks
/// from all users but root. Not thread-safe.
class RevokedTokens {
public:
    explicit RevokedTokens(std::string path) : path_(std::move(path)) {}

    /// Makes the file where it is missing or too short. A failure is passed over: the next call
    /// tries again.
    void prepare() const noexcept;
    /// On disk (synced) when it returns true; false where that is not possible.
    bool add(const std::string& id) const noexcept;
    std::set<std::string> ids() const;
    /// The database knows them all.
    void clear() const noexcept;

private:
    const std::string path_;
};

}  // namespace hearth::controller

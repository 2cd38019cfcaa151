#pragma once

#include <atomic>
#include <set>
#include <string>

namespace hearth::controller {

/// Stores in its own file that this instance has had a token, so that neither a lost database nor
/// an emptied configuration opens the instance. A change is on disk (synced) when it returns. had()
/// may be called from any thread, the changes from one at a time.
class TokenHistory {
public:
    /// If there is no such file, `doubtful` counts as a yes: an instance ran here and its database
    /// has no answer any more. An unreadable file is a yes. Throws std::system_error if a yes
    /// cannot be written.
    TokenHistory(std::string path, bool doubtful);

    bool had() const { return had_.load(); }
    /// The path for RevokedTokens, beside this object's file.
    std::string revokedPath() const;
    /// Call it before a token can be used. If it throws std::system_error, there must be no token.
    void remember();
    /// Writes that there was no token so far, unless the file exists. A failure is ignored: a
    /// missing answer counts as doubt.
    void settle() noexcept;

private:
    void put(const char* answer);

    const std::string path_;
    bool written_ = false;
    std::atomic<bool> had_{false};
};

/// Ids of tokens that were revoked while the disk accepted no change of the database: a stolen
/// token must be revocable on a full disk. The file has its blocks from the beginning and is
/// overwritten in place. Freed space would not do, because ext4 reserves a part of the free blocks
/// for root. Not thread-safe.
class RevokedTokens {
public:
    explicit RevokedTokens(std::string path) : path_(std::move(path)) {}

    /// Creates the file if it is missing or too short. A failure is ignored: the next call tries
    /// again.
    void prepare() const noexcept;
    /// True when the id is on disk (synced); false if that is not possible.
    bool add(const std::string& id) const noexcept;
    std::set<std::string> ids() const;
    /// Called when the database has them all.
    void clear() const noexcept;

private:
    const std::string path_;
};

}  // namespace hearth::controller

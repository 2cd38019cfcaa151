#pragma once

#include <deque>
#include <optional>
#include <string>

#include "base/Mutex.h"
#include "pool/agent/client/AgentClient.h"
#include "pool/agent/client/Transfers.h"
#include "pool/agent/connection/AgentConnection.h"

namespace hearth::agent {

/// The client's end of reading or writing one file. Keeps the received bytes until the waiting
/// thread takes them; never more than the credit. Thread-safe.
class FileStream final : public Stream {
public:
    bool frame(AgentConnection& from, const FrameHeader& header, std::string_view payload) override;

    /// True if nextChunk(), note() or answer() has something.
    bool hasNews() const;
    bool canWrite() const;
    std::optional<std::string> note();
    /// The open file that came with the note.
    Fd passed();
    std::optional<std::string> nextChunk();
    /// Returns the answer only when everything before it has been taken.
    std::optional<Answer> answer();
    /// Takes at most `wanted` bytes of the credit to write.
    std::size_t takeCredit(std::size_t wanted);
    /// Counts consumed bytes; returns the credit to grant now, if any.
    std::size_t consumed(std::size_t bytes);

private:
    mutable Mutex mutex_;
    bool noted_ HEARTH_GUARDED_BY(mutex_) = false;
    bool ended_ HEARTH_GUARDED_BY(mutex_) = false;
    std::optional<std::string> note_ HEARTH_GUARDED_BY(mutex_);
    Fd passed_ HEARTH_GUARDED_BY(mutex_);
    std::deque<std::string> chunks_ HEARTH_GUARDED_BY(mutex_);
    std::optional<Answer> answer_ HEARTH_GUARDED_BY(mutex_);
    std::size_t window_ HEARTH_GUARDED_BY(mutex_) = kInitialCredit;
    std::size_t owed_ HEARTH_GUARDED_BY(mutex_) = 0;
    std::size_t credit_ HEARTH_GUARDED_BY(mutex_) = kInitialCredit;
};

/// Asks for an operation that sends bytes (`read`, `archiveGet`), as AgentClient::readFile. Sets
/// `begun` before the first callback. If the request says `pass` and the agent passes the open
/// file, it is read here, as one of `transfers`. Returns false, before any callback, if the passed
/// file must not be read here: ask again without `pass`. Throws Error(Deadline) at the deadline, or
/// without progress for kDataPatience.
bool download(AgentConnection& connection, AgentConnection::Deadline deadline, Transfers& transfers,
              bool& begun, const Json& request, const std::function<void(const FileStat&)>& begin,
              const std::function<bool(std::string_view)>& chunk);
/// Gives the next bytes to write, at most as many as there is room for; 0 at the end.
using NextBytes = std::function<std::size_t(char*, std::size_t)>;

/// The beginning of the bytes to write, taken before an agent is asked.
struct FirstBytes {
    std::string bytes;
    bool whole = false;  ///< there are no more bytes
};
FirstBytes firstBytes(const NextBytes& next);

/// Asks for an operation that takes bytes (`write`, `archivePut`), returns its reply. Sets `begun`
/// before the first call of `next`. If the request says `pass` and the agent passes the file, it
/// is written here, so that its bytes are not copied through the agent.
Json upload(AgentConnection& connection, Transfers& transfers, bool& begun, const Json& request,
            const FirstBytes& first, const NextBytes& next);

}  // namespace hearth::agent

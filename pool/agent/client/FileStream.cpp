#include "pool/agent/client/FileStream.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <initializer_list>
#include <memory>

#include "base/Error.h"
#include "pool/agent/client/DataConnections.h"
#include "pool/agent/connection/Ask.h"

namespace hearth::agent {
namespace {

constexpr std::size_t kMaxCredit = 16U << 20U;
/// The number of bytes of a passed file that are read or written at once.
constexpr std::size_t kPassedPiece = 256U << 10U;
/// A file up to this size is not worth passing.
constexpr std::size_t kFirst = 64U << 10U;

FrameHeader header(FrameType type, std::uint32_t stream, std::size_t length = 0) {
    FrameHeader made;
    made.length = static_cast<std::uint32_t>(length);
    made.stream = stream;
    made.type = type;
    return made;
}

AgentConnection::Deadline patience() {
    return Steady::now() + kDataPatience;
}

void awaitNews(AgentConnection& connection, const std::shared_ptr<FileStream>& stream,
               bool or_credit,
               AgentConnection::Deadline deadline = AgentConnection::Deadline::max()) {
    const bool came = connection.await(
        stream.get(), [&] { return stream->hasNews() || (or_credit && stream->canWrite()); },
        std::min(deadline, patience()));
    if (came) return;
    connection.kill(AgentConnection::End::Late, "a file operation made no progress");
    DataConnections::throwLate();
}

/// Checks that it is a regular file of one of these file systems.
bool isFileOf(int fd, std::initializer_list<long> systems) {
    struct stat st {};
    struct statfs system {};
    if (::fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || ::fstatfs(fd, &system) != 0) return false;
    return std::ranges::find(systems, static_cast<long>(system.f_type)) != systems.end();
}

/// Checks that reading it only reads: a regular file of a file system that keeps its own files,
/// not one where a read asks another process, or has an effect.
bool readsLikeAFile(int fd) {
    return isFileOf(fd, {EXT4_SUPER_MAGIC, TMPFS_MAGIC, OVERLAYFS_SUPER_MAGIC, XFS_SUPER_MAGIC,
                         BTRFS_SUPER_MAGIC});
}

/// The same check for writing. Not tmpfs: its memory is charged to this process.
bool writesLikeAFile(int fd) {
    const int flags = ::fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & O_ACCMODE) == O_WRONLY &&
           (flags & (O_APPEND | O_DIRECT | O_SYNC | O_DSYNC)) == 0 &&
           isFileOf(fd, {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC});
}

/// Writes as much as can be written, and returns the number of bytes.
std::size_t writePassed(const Transfers::File& file, std::string_view bytes) {
    const std::shared_ptr<const Fd> fd = file.use();
    std::size_t done = 0;
    while (done < bytes.size()) {
        const ssize_t n = ::write(fd->get(), bytes.data() + done, bytes.size() - done);
        if (n > 0) {
            done += static_cast<std::size_t>(n);
        } else if (errno != EINTR) {
            break;
        }
    }
    return done;
}

/// Reads from `offset`; a `length` of 0 means up to the end.
void readPassed(const Transfers::File& file, std::uint64_t offset, std::uint64_t length,
                const std::function<bool(std::string_view)>& chunk) {
    const std::uint64_t most = length == 0 ? UINT64_MAX : length;
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(most, kPassedPiece));
    const auto buffer = std::make_unique_for_overwrite<char[]>(size);
    for (std::uint64_t done = 0; done < most;) {
        const ssize_t n =
            ::pread(file.use()->get(), buffer.get(),
                    static_cast<std::size_t>(std::min<std::uint64_t>(size, most - done)),
                    static_cast<off_t>(offset + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) throw Error(ErrorCode::Conflict, "the file cannot be read");
        if (n == 0 || !chunk({buffer.get(), static_cast<std::size_t>(n)})) return;
        done += static_cast<std::uint64_t>(n);
    }
}

/// Gives up: when this returns, the agent has thrown away its part of the data.
void cancel(AgentConnection& connection, const std::shared_ptr<FileStream>& stream,
            std::uint32_t number) {
    try {
        connection.send(header(FrameType::Cancel, number), {}, patience());
        connection.await(
            stream.get(), [&] { return stream->hasNews(); }, patience());
    } catch (const AgentLost&) {
        return;  // an agent that sees the connection end throws it away as well
    }
}

}  // namespace

bool FileStream::frame(AgentConnection& from, const FrameHeader& head, std::string_view payload) {
    const MutexLock lock(mutex_);
    switch (head.type) {
        case FrameType::Note:
            if (std::exchange(noted_, true)) throw ProtocolError("a second note about a file");
            note_ = payload;
            passed_ = from.takePassed();
            return false;
        case FrameType::Data:
            if (!noted_ || ended_ || head.channel != Channel::Bytes || payload.empty()) {
                throw ProtocolError("file bytes out of place");
            }
            if (payload.size() > window_) throw ProtocolError("file bytes without credit");
            window_ -= payload.size();
            chunks_.emplace_back(payload);
            return false;
        case FrameType::Credit: {
            if (payload.size() != 4) throw ProtocolError("credit of a wrong size");
            const std::size_t more = getU32(reinterpret_cast<const unsigned char*>(payload.data()));
            if (more == 0 || more > kMaxCredit - credit_) throw ProtocolError("senseless credit");
            credit_ += more;
            return false;
        }
        case FrameType::End:
            if (std::exchange(ended_, true) || !payload.empty()) {
                throw ProtocolError("an end behind the end");
            }
            return false;
        case FrameType::Reply:
        case FrameType::Error:
            answer_ = Answer{head.type == FrameType::Error, std::string(payload)};
            return true;
        default:
            throw ProtocolError("a frame that only a client may send");
    }
}

bool FileStream::hasNews() const {
    const MutexLock lock(mutex_);
    return note_ || !chunks_.empty() || answer_;
}

bool FileStream::canWrite() const {
    const MutexLock lock(mutex_);
    return credit_ > 0;
}

std::optional<std::string> FileStream::note() {
    const MutexLock lock(mutex_);
    return std::exchange(note_, std::nullopt);
}

Fd FileStream::passed() {
    const MutexLock lock(mutex_);
    return std::move(passed_);
}

std::optional<std::string> FileStream::nextChunk() {
    const MutexLock lock(mutex_);
    if (chunks_.empty()) return std::nullopt;
    std::optional<std::string> chunk(std::move(chunks_.front()));
    chunks_.pop_front();
    return chunk;
}

std::optional<Answer> FileStream::answer() {
    const MutexLock lock(mutex_);
    return note_ || !chunks_.empty() ? std::nullopt : answer_;
}

std::size_t FileStream::takeCredit(std::size_t wanted) {
    const MutexLock lock(mutex_);
    const std::size_t taken = std::min({wanted, credit_, kMaxPayload});
    credit_ -= taken;
    return taken;
}

std::size_t FileStream::consumed(std::size_t bytes) {
    const MutexLock lock(mutex_);
    owed_ += bytes;
    if (owed_ < kInitialCredit / 2) return 0;
    window_ += owed_;
    return std::exchange(owed_, 0);
}

bool download(AgentConnection& connection, AgentConnection::Deadline deadline, Transfers& transfers,
              bool& begun, const Json& request, const std::function<void(const FileStat&)>& begin,
              const std::function<bool(std::string_view)>& chunk) {
    const auto stream = std::make_shared<FileStream>();
    const std::uint32_t number =
        connection.open(stream, dumpJson(request), std::min(deadline, patience()));
    std::uint64_t taken = 0;
    bool noted = false;
    bool usable = true;
    std::optional<Transfers::File> file;
    for (;;) {
        awaitNews(connection, stream, false, deadline);
        if (const auto note = stream->note()) {
            const FileStat stat =
                believing(connection, [&] { return decodeStat(parseObject(*note)); });
            Fd passed = stream->passed();
            usable = !passed || readsLikeAFile(passed.get());
            if (passed && usable) file.emplace(transfers, std::move(passed));
            noted = true;
            if (usable) {
                begun = true;
                begin(stat);
            }
        }
        while (const auto bytes = stream->nextChunk()) {
            taken += bytes->size();
            if (!chunk(*bytes)) {
                connection.send(header(FrameType::Cancel, number), {}, patience());
                connection.kill(AgentConnection::End::Ours, "the reader has enough");
                return true;
            }
            if (const std::size_t grant = stream->consumed(bytes->size()); grant > 0) {
                connection.postCredit(number, grant);
            }
        }
        if (const auto answer = stream->answer()) {
            believing(connection, [&] {
                if (answer->error) throw decodeError(answer->payload);
                if (!noted || decodeBytes(parseObject(answer->payload)) != taken) {
                    throw ProtocolError("a file of another length than was sent");
                }
            });
            if (file) {
                readPassed(*file, request.at("offset").get<std::uint64_t>(),
                           request.at("length").get<std::uint64_t>(), chunk);
            }
            return usable;
        }
    }
}

FirstBytes firstBytes(const NextBytes& next) {
    FirstBytes first;
    first.bytes.resize(kFirst);
    std::size_t have = 0;
    while (have < kFirst && !first.whole) {
        const std::size_t size = next(first.bytes.data() + have, kFirst - have);
        have += std::min(size, kFirst - have);
        first.whole = size == 0;
    }
    first.bytes.resize(have);
    return first;
}

Json upload(AgentConnection& connection, Transfers& transfers, bool& begun, const Json& request,
            const FirstBytes& first, const NextBytes& next) {
    const auto stream = std::make_shared<FileStream>();
    const std::uint32_t number = connection.open(stream, dumpJson(request), patience());

    const auto finish = [&](const Answer& answer, bool sent_all) {
        return believing(connection, [&] {
            if (answer.error) throw decodeError(answer.payload);
            if (!sent_all) throw ProtocolError("a file was done before it was sent");
            return parseObject(answer.payload);
        });
    };
    const auto refuse_rest = [&] {
        if (!stream->note() && !stream->nextChunk()) return;
        believing(connection,
                  []() -> bool { throw ProtocolError("bytes of a file being written"); });
    };

    std::optional<Transfers::File> file;
    if (request.value("pass", false)) {
        awaitNews(connection, stream, false);
        Fd passed;
        if (stream->note()) passed = stream->passed();
        if (passed && writesLikeAFile(passed.get())) file.emplace(transfers, std::move(passed));
    }
    begun = true;
    const auto buffer = std::make_unique_for_overwrite<char[]>(first.whole ? 0 : kPassedPiece);
    for (std::string_view rest = first.bytes;;) {
        while (!rest.empty()) {
            awaitNews(connection, stream, true);
            refuse_rest();
            if (const auto answer = stream->answer()) return finish(*answer, false);
            if (file) {
                rest.remove_prefix(writePassed(*file, rest));
                // The agent fails at the same place and reports the reason.
                if (!rest.empty()) file.reset();
                continue;
            }
            const std::size_t piece = stream->takeCredit(rest.size());
            connection.send(header(FrameType::Data, number, piece), rest.substr(0, piece),
                            patience());
            rest.remove_prefix(piece);
        }
        if (first.whole) break;
        std::size_t size = 0;
        try {
            size = next(buffer.get(), kPassedPiece);
        } catch (...) {
            cancel(connection, stream, number);
            throw;
        }
        if (size == 0) break;
        rest = {buffer.get(), std::min(size, kPassedPiece)};
    }
    connection.send(header(FrameType::End, number), {}, patience());
    for (;;) {
        awaitNews(connection, stream, false);
        refuse_rest();
        if (const auto answer = stream->answer()) return finish(*answer, true);
    }
}

}  // namespace hearth::agent

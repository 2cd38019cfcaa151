#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/Fd.h"
#include "pool/agent/program/core/JsonValue.h"
#include "pool/agent/program/files/WorkspaceFiles.h"
#include "pool/agent/protocol/Frame.h"

namespace hearth::agent {

/// A frame made by a file operation.
struct FileFrame {
    FrameType type = FrameType::Data;
    std::string payload;
    Fd fd{};  ///< is sent with the frame
};

/// The budget of an operation for one step, and its message after it.
struct FileTurn {
    const WorkspaceFiles& workspace;
    const std::atomic<bool>& cancelled;
    std::uint64_t credit = 0;  ///< Data bytes it may send
    std::string input;         ///< Data bytes of the client; taken in this step
    bool input_ended = false;
    bool may_pass = false;  ///< descriptors reach the client
    std::vector<FileFrame> out;
    const char* field = "";  ///< of the request, which an Error names if it has several paths

    void note(const JsonValue& body) { out.push_back({FrameType::Note, body.dump()}); }
    void reply(const JsonValue& body) { out.push_back({FrameType::Reply, body.dump()}); }
    void fail(const char* code, const std::string& message);
    /// Sends an Error for the current errno.
    void failErrno();
};

/// One file operation, done in steps that each block at most for one piece of disk work, so that a
/// stream without credit never holds up another. Steps run on one thread with the tenant's
/// identity.
class FileOperation {
public:
    enum class Next : std::uint8_t { Step, Credit, Input, Done };

    FileOperation() = default;
    FileOperation(const FileOperation&) = delete;
    FileOperation& operator=(const FileOperation&) = delete;
    /// Undoes unfinished work.
    virtual ~FileOperation() = default;
    /// Done means that the last frame is the Reply or Error.
    virtual Next step(FileTurn& turn) = 0;

    /// Null if the request names no file operation.
    static std::unique_ptr<FileOperation> make(std::string_view op, const JsonValue& body);
    static bool isFileOperation(std::string_view op);
    /// True if it keeps the workspace from being idle: operations that move bytes or change files
    /// do, operations that only look do not.
    static bool isActivity(std::string_view op);
};

std::unique_ptr<FileOperation> makeTreeOperation(std::string_view op, const JsonValue& body);
/// `archiveGet`: a tar of a directory, made while it is sent.
std::unique_ptr<FileOperation> makeArchiveGet(const JsonValue& body);
/// `archivePut`: unpacks a tar beside the tree, then moves it in.
std::unique_ptr<FileOperation> makeArchivePut(const JsonValue& body);

}  // namespace hearth::agent

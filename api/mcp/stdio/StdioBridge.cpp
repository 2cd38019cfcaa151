#include "api/mcp/stdio/StdioBridge.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <tuple>
#include <utility>

#include "api/mcp/protocol/Era.h"
#include "api/mcp/seeds/LocalArguments.h"
#include "api/mcp/tools/Content.h"
#include "base/Error.h"
#include "base/Version.h"

namespace hearth::mcp {
namespace {

constexpr const char* kNoLocalFiles =
    " It reaches no file of the user's machine: no directory there is shared. The user shares one "
    "by starting `hearth mcp --root DIRECTORY`.";

void addProperty(Json& tool, const std::string& name, const std::string& description) {
    if (member(tool, "inputSchema") == nullptr || !tool["inputSchema"].is_object()) return;
    tool["inputSchema"]["properties"][name] = {{"type", "string"}, {"description", description}};
}

void sealModern(Json& result) {
    result["resultType"] = "complete";
    result["_meta"][envelope::kServer] = {{"name", "hearth"}, {"version", kHearthVersion}};
}

}  // namespace

void addLocalArguments(Json& answer, const std::string& root) {
    const Json* result = member(answer, "result");
    const Json* tools = result == nullptr ? nullptr : member(*result, "tools");
    if (tools == nullptr || !tools->is_array()) return;
    for (Json& tool : answer["result"]["tools"]) {
        const std::string name = stringMember(tool, "name").value_or("");
        if (name != "file_put" && name != "file_get") continue;
        if (root.empty()) {
            tool["description"] = stringMember(tool, "description").value_or("") + kNoLocalFiles;
        } else if (name == "file_put") {
            addProperty(tool, "local_path",
                        "Instead of text: a file on the user's machine beneath " + root +
                            " to upload, of any size.");
        } else {
            addProperty(tool, "save_to",
                        "Save the file on the user's machine under this path beneath " + root +
                            " instead of showing it.");
        }
    }
}

StdioBridge::StdioBridge(const BridgeOptions& options, int in, int out, metrics::Log& log)
    : options_(options),
      in_(in),
      out_(out),
      log_(log),
      upstream_(options.url, options.token,
                options.compat.empty() ? "/mcp" : "/compat/" + options.compat + "/mcp",
                options.client),
      reader_client_(upstream_.connect()) {
    if (!options_.root.empty()) files_.emplace(options_.root);
}

int StdioBridge::run() {
    std::string buffer;
    std::string chunk(64U << 10U, '\0');
    while (true) {
        const ssize_t n = ::read(in_, chunk.data(), chunk.size());
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        std::size_t search = buffer.size();
        buffer.append(chunk, 0, static_cast<std::size_t>(n));
        std::size_t begin = 0;
        for (std::size_t end = buffer.find('\n', search); end != std::string::npos;
             end = buffer.find('\n', search)) {
            take(buffer.substr(begin, end - begin));
            begin = search = end + 1;
        }
        buffer.erase(0, begin);
        if (buffer.size() > kMaxLine) {
            write(errorMessage({}, {rpc::kParseError, "a line is larger than 16 MiB", {}}));
            return 1;
        }
    }
    take(std::move(buffer));
    endSubscriptions();
    UniqueMutexLock lock(mutex_);
    if (!changed_.waitFor(mutex_, options_.grace,
                          [this]() HEARTH_REQUIRES(mutex_) { return busy_ == 0; }))
        std::_Exit(0);
    lock.unlock();
    stream_.reset();
    return 0;
}

void StdioBridge::take(std::string line) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (line.empty()) return;
    Json message;
    try {
        JsonLimits limits;
        limits.bytes = kMaxLine;
        message = parseJson(line, limits);
    } catch (const Error& error) {
        write(
            errorMessage({}, {rpc::kParseError, std::string("Parse error: ") + error.what(), {}}));
        return;
    }
    if (message.is_array()) {
        enqueue(std::move(message));
        return;
    }
    const Message read = readMessage(message);
    switch (read.kind) {
        case MessageKind::Invalid:
            write(errorMessage(read.id, {rpc::kInvalidRequest, read.problem, {}}));
            return;
        case MessageKind::Response:
        case MessageKind::Notification:
            takeNotification(message, read);
            return;
        case MessageKind::Request:
            break;
    }
    if (read.method != "initialize") {
        enqueue(std::move(message));
        return;
    }
    // In this thread and not in another, because the next messages need its session.
    stream_.reset();
    try {
        upstream_.initialize(reader_client_, message, [this](const Json& one) { write(one); });
    } catch (const std::exception& error) {
        reader_client_.close();
        write(failure(read.id, error));
    }
}

void StdioBridge::takeNotification(const Json& message, const Message& read) {
    if (read.method == "notifications/cancelled") {
        const Json* id = member(read.params, "requestId");
        if (id != nullptr && cancel(*id)) return;
    }
    if (classify(message, std::nullopt).kind != Classified::Kind::Legacy) return;
    try {
        upstream_.exchange(reader_client_, message, [](const Json&) {});
    } catch (const std::exception& error) {
        reader_client_.close();
        log_.warn("mcp_notification_lost", {{"method", read.method}, {"error", error.what()}});
        return;
    }
    if (read.method == "notifications/initialized" && !stream_) {
        stream_ =
            std::make_unique<SessionStream>(upstream_, [this](const Json& one) { write(one); });
    }
}

bool StdioBridge::cancel(const Json& id) {
    const MutexLock lock(mutex_);
    const auto found = in_work_.find(dumpJson(id));
    if (found == in_work_.end()) return false;
    cancelled_.insert(found->first);
    // The server takes the end of the connection as a cancel of the call.
    if (found->second.carrier != nullptr) found->second.carrier->interrupt();
    return found->second.carrier != nullptr;
}

void StdioBridge::endSubscriptions() {
    const MutexLock lock(mutex_);
    for (const auto& [id, request] : in_work_) {
        if (!request.subscription) continue;
        cancelled_.insert(id);
        if (request.carrier != nullptr) request.carrier->interrupt();
    }
}

void StdioBridge::enqueue(Json message) {
    const MutexLock lock(mutex_);
    if (message.is_object()) {
        const bool subscription = message["method"] == "subscriptions/listen";
        in_work_.emplace(dumpJson(message["id"]), Request{nullptr, subscription});
    }
    ++busy_;
    queue_.push_back(std::move(message));
    if (idle_ < queue_.size() && threads_.size() < kMaxThreads) {
        threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
    }
    changed_.notifyAll();
}

void StdioBridge::work(const std::stop_token& stop) {
    http::HttpClient client = upstream_.connect();
    while (true) {
        Json message;
        {
            const MutexLock lock(mutex_);
            ++idle_;
            const bool found = changed_.wait(
                mutex_, stop, [this]() HEARTH_REQUIRES(mutex_) { return !queue_.empty(); });
            --idle_;
            if (!found) return;
            message = std::move(queue_.front());
            queue_.pop_front();
        }
        answer(client, message);
        {
            const MutexLock lock(mutex_);
            --busy_;
            if (message.is_object()) {
                in_work_.erase(dumpJson(message["id"]));
                cancelled_.erase(dumpJson(message["id"]));
            }
        }
        changed_.notifyAll();
    }
}

bool StdioBridge::carry(const Json& id, http::HttpClient& client) {
    const MutexLock lock(mutex_);
    const std::string key = dumpJson(id);
    if (cancelled_.contains(key)) return false;
    in_work_[key].carrier = &client;
    return true;
}

bool StdioBridge::takenBack(const Json& id) {
    const MutexLock lock(mutex_);
    return cancelled_.contains(dumpJson(id));
}

void StdioBridge::answer(http::HttpClient& client, const Json& message) {
    const bool batch = message.is_array();
    const Message read = batch ? Message{} : readMessage(message);
    const bool modern = !batch && classify(message, std::nullopt).kind != Classified::Kind::Legacy;
    bool answered = batch;
    const Upstream::Deliver deliver = [&](const Json& one) {
        Json out = one;
        // A refusal that the server sent before it read the message lacks the id.
        if (!batch && out.is_object() && out.contains("error") && !out.contains("id")) {
            out["id"] = read.id;
        }
        const Json* id = member(out, "id");
        if (!batch && id != nullptr && *id == read.id) {
            answered = true;
            if (read.method == "tools/list") {
                addLocalArguments(out, files_ ? files_->root() : "");
            }
        }
        if (!takenBack(read.id)) write(out);
    };
    try {
        Json here = batch ? Json() : answerHere(client, read);
        if (modern && !here.is_null()) sealModern(here["result"]);
        if (!here.is_null()) {
            deliver(here);
            return;
        }
        if (!modern) {
            upstream_.exchange(client, message, deliver);
        } else if (carry(read.id, client)) {
            upstream_.exchangeModern(client, message, deliver);
        }
        if (!answered && !takenBack(read.id)) {
            write(
                errorMessage(read.id, {rpc::kTransport, "the server ended the answer early", {}}));
        }
    } catch (const std::exception& error) {
        client.close();
        if (!takenBack(read.id)) write(failure(read.id, error));
    }
}

Json StdioBridge::answerHere(http::HttpClient& client, const Message& message) {
    if (message.method != "tools/call") return {};
    const std::string tool = stringMember(message.params, "name").value_or("");
    const Json* arguments = member(message.params, "arguments");
    if (arguments == nullptr) return {};
    if (!options_.compat.empty()) return answerSeed(client, message, *arguments);
    const bool put = tool == "file_put" && stringMember(*arguments, "local_path");
    const bool get = tool == "file_get" && stringMember(*arguments, "save_to");
    if (!put && !get) return {};
    try {
        return resultMessage(message.id,
                             textResult(put ? upstream_.upload(client, *arguments, files())
                                            : upstream_.download(client, *arguments, files()))
                                 .message());
    } catch (const Error& error) {
        client.close();
        return resultMessage(message.id, errorResult(withNextStep(error)).message());
    }
}

const LocalFiles& StdioBridge::files() const {
    if (files_) return *files_;
    throw Error(ErrorCode::Forbidden, "no directory of the user's machine is shared")
        .hint(
            "Without local_path and save_to files travel in the call itself. To share one, the "
            "user starts `hearth mcp --root DIRECTORY` (in the client's configuration: "
            "\"args\": [\"mcp\", \"--root\", \"DIRECTORY\"]).");
}

Json StdioBridge::answerSeed(http::HttpClient& client, const Message& message,
                             const Json& arguments) {
    const seeds::LocalArgument* which =
        seeds::localArgument(options_.compat, stringMember(message.params, "name").value_or(""));
    const auto move = which == nullptr ? std::nullopt : seeds::localMove(*which, arguments);
    if (!move) return {};
    try {
        std::string local = move->local;
        std::uint64_t bytes = 0;
        if (which->direction == seeds::LocalArgument::Direction::Get) {
            std::tie(local, bytes) =
                upstream_.get(client, move->workspace, move->remote, files(), move->local);
        } else if (which->kind == seeds::LocalArgument::Kind::File) {
            bytes = upstream_.put(client, move->workspace, move->remote, {}, files(), local);
        } else {
            for (const std::string& one : files().tree(local)) {
                std::string remote = move->remote;
                remote.append("/").append(one);
                std::string source = local;
                source.append("/").append(one);
                bytes += upstream_.put(client, move->workspace, remote, {}, files(), source);
            }
        }
        const Json result = seeds::localResult(*which, *move, local, bytes);
        return resultMessage(message.id, textResult(dumpJson(result)).message());
    } catch (const Error& error) {
        client.close();
        return resultMessage(message.id, errorResult(error).message());
    }
}

Json StdioBridge::failure(const Json& id, const std::exception& error) const {
    const auto* known = dynamic_cast<const Error*>(&error);
    std::string text = error.what();
    if (known != nullptr && known->code() == ErrorCode::Unavailable) {
        text = "Hearth is not reachable at " + options_.url + " (" + text +
               "). Start it with `hearth serve`, or set HEARTH_URL or --url to where it runs.";
    } else if (known != nullptr && !known->hint().empty()) {
        text += ". " + known->hint();
    }
    return errorMessage(id, {rpc::kTransport, text, {}});
}

void StdioBridge::write(const Json& message) {
    const std::string line = dumpJson(message) + "\n";
    std::string_view rest = line;
    const MutexLock lock(out_mutex_);
    while (!rest.empty()) {
        const ssize_t n = ::write(out_, rest.data(), rest.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return;  // the client is gone; the end of input follows
        rest.remove_prefix(static_cast<std::size_t>(n));
    }
}

}  // namespace hearth::mcp

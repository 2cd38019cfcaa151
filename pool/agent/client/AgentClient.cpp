#include "pool/agent/client/AgentClient.h"

#include <algorithm>

#include "base/Mutex.h"
#include "pool/agent/client/DataConnections.h"
#include "pool/agent/client/EgressCarrier.h"
#include "pool/agent/client/EgressStream.h"
#include "pool/agent/client/ExecStream.h"
#include "pool/agent/client/FileStream.h"
#include "pool/agent/client/PrewarmStream.h"
#include "pool/agent/connection/Ask.h"
#include "pool/agent/connection/ClockShift.h"
#include "pool/agent/protocol/PathText.h"

namespace hearth::agent {
namespace {

/// Short: forgetting costs an agent little, nobody waits for it, and a slow agent is asked again.
constexpr auto kForgetPatience = std::chrono::seconds(1);
constexpr std::chrono::seconds kSendPatience{10};

/// Reports the loss of an agent once to the client's owner, but not before the hello is done.
class LossReport {
public:
    explicit LossReport(AgentClient::OnLost on_lost) : on_lost_(std::move(on_lost)) {}

    void lost(const AgentLost& loss) {
        AgentClient::OnLost report;
        {
            const MutexLock lock(mutex_);
            lost_ = true;
            if (established_) report = std::move(on_lost_);
        }
        if (report) report(loss);
    }
    /// Returns false if the agent has been lost already.
    bool establish() {
        const MutexLock lock(mutex_);
        established_ = true;
        return !lost_;
    }

private:
    Mutex mutex_;
    AgentClient::OnLost on_lost_ HEARTH_GUARDED_BY(mutex_);
    bool established_ HEARTH_GUARDED_BY(mutex_) = false;
    bool lost_ HEARTH_GUARDED_BY(mutex_) = false;
};

class Handle final : public ExecHandle {
public:
    Handle(std::shared_ptr<AgentConnection> connection, std::shared_ptr<ExecStream> stream,
           std::uint32_t number)
        : connection_(std::move(connection)), stream_(std::move(stream)), number_(number) {}

    void writeStdin(std::string_view bytes, std::chrono::milliseconds timeout) override {
        const auto deadline = Steady::now() + timeout;
        while (!bytes.empty()) {
            if (!connection_->await(
                    stream_.get(), [this] { return stream_->canWrite(); }, deadline)) {
                throw Error(ErrorCode::Deadline, "the execution does not read its input");
            }
            if (stream_->finished()) return;
            const std::size_t piece = stream_->takeCredit(bytes.size());
            sendFrame(FrameType::Data, bytes.substr(0, piece));
            bytes.remove_prefix(piece);
        }
    }

    void closeStdin() override {
        if (!stream_->finished()) sendFrame(FrameType::End, {});
    }

    void giveStdin(std::string bytes) override {
        stream_->give(*connection_, number_, std::move(bytes));
    }

private:
    void sendFrame(FrameType type, std::string_view bytes) {
        FrameHeader header;
        header.length = static_cast<std::uint32_t>(bytes.size());
        header.stream = number_;
        header.type = type;
        connection_->send(header, bytes, Steady::now() + kSendPatience);
    }

    const std::shared_ptr<AgentConnection> connection_;
    const std::shared_ptr<ExecStream> stream_;
    const std::uint32_t number_;
};

class Grants final : public EgressHandle {
public:
    Grants(std::shared_ptr<AgentConnection> connection, std::shared_ptr<EgressStream> stream,
           std::uint32_t number, std::shared_ptr<EgressCarrier> carrier)
        : connection_(std::move(connection)),
          stream_(std::move(stream)),
          number_(number),
          carrier_(std::move(carrier)) {}

    void grant(std::uint32_t connections) override {
        if (stream_->over() || connection_->dead()) return;
        stream_->granted(connections);
        connection_->postCredit(number_, connections);
    }
    TakenConnection take(std::int64_t connection, std::shared_ptr<void> until_over) override {
        return carrier_->take(connection, std::move(until_over));
    }

private:
    const std::shared_ptr<AgentConnection> connection_;
    const std::shared_ptr<EgressStream> stream_;
    const std::uint32_t number_;
    const std::shared_ptr<EgressCarrier> carrier_;
};

bool nothing(const Json&) {
    return true;
}

/// Returns when an operation that transfers a file must have its connection at the latest.
Steady::time_point connectBy() {
    return Steady::now() + kDataPatience;
}

Deadlines shifted(Deadlines deadlines, const ClockShift& shift) {
    deadlines.expires_at = shift.ours(deadlines.expires_at);
    deadlines.idle_at = shift.ours(deadlines.idle_at);
    return deadlines;
}

/// Converts the times of a hello to this process's clock.
void toOurTime(Hello& hello, const ClockShift& shift) {
    hello.deadlines = shifted(hello.deadlines, shift);
    hello.last_activity = shift.ours(hello.last_activity);
    if (hello.binding) hello.binding->bound_at = shift.ours(hello.binding->bound_at);
    for (KnownExecution& known : hello.executions) known.started_at = shift.ours(known.started_at);
}

}  // namespace

struct AgentClient::Impl {
    std::chrono::milliseconds timeout{0};
    std::shared_ptr<AgentConnection> control;
    std::shared_ptr<DataConnections> data;
    std::shared_ptr<EgressCarrier> carrier;
    ClockShift shift;  ///< as measured at the hello

    AgentConnection::Deadline deadline() const { return Steady::now() + timeout; }

    template <typename Decode>
    auto askControl(std::string_view request, Decode decode) const {
        return askControl(request, timeout, decode);
    }
    template <typename Decode>
    auto askControl(std::string_view request, std::chrono::milliseconds patience,
                    Decode decode) const {
        const auto connection = control;  // on_lost may destroy this client meanwhile
        return ask(*connection, request, Steady::now() + patience, decode);
    }

    template <typename Decode>
    auto askData(const std::string& request, Decode decode,
                 std::chrono::milliseconds patience = kDataPatience) const {
        const auto connections = data;
        const auto until = Steady::now() + patience;
        return connections->run(until, [&](AgentConnection& connection, bool&) {
            return ask(connection, request, until, decode);
        });
    }

    std::shared_ptr<ExecHandle> start(const std::string& request, const std::string& id,
                                      std::uint64_t offset, std::uint64_t results,
                                      std::uint64_t output_limit,
                                      const std::shared_ptr<ExecSink>& sink) const {
        const auto connection = control;
        auto stream = std::make_shared<ExecStream>(id, offset, results, output_limit, shift, sink);
        const std::uint32_t number = connection->open(stream, request, deadline());
        return std::make_shared<Handle>(connection, std::move(stream), number);
    }
};

AgentClient::AgentClient(Poller& poller, Connect connect, std::uint64_t epoch,
                         std::chrono::milliseconds timeout, OnLost on_lost, const Clock* clock)
    : impl_(std::make_unique<Impl>()) {
    AgentLink link = dial(connect, secure::Purpose::Control);
    const auto report = std::make_shared<LossReport>(std::move(on_lost));
    const auto transfers = std::make_shared<Transfers>();
    impl_->timeout = timeout;
    impl_->control = AgentConnection::start(
        poller, std::move(link),
        [report, transfers](AgentConnection::End end, const std::string& reason) {
            transfers->cut();  // first: a listener of the loss may wait for the disk
            report->lost(AgentLost(reason, lossOf(end)));
        });
    const TimePoint asked = clock != nullptr ? clock->now() : TimePoint{};
    hello_ = impl_->askControl(encodeControlHello(epoch), decodeHello);
    if (clock != nullptr) impl_->shift = ClockShift(asked, hello_.now, clock->now());
    toOurTime(hello_, impl_->shift);
    impl_->data = std::make_shared<DataConnections>(poller, std::move(connect), epoch,
                                                    impl_->control, transfers);
    impl_->carrier = std::make_shared<EgressCarrier>(poller, impl_->data);
    if (hello_.binding) impl_->data->setClaim(hello_.binding->claim_id);
    if (!report->establish()) throw AgentLost(impl_->control->reason());
}

AgentClient::~AgentClient() {
    close();
}

void AgentClient::close() {
    impl_->data->close();
    impl_->control->close();
}

bool AgentClient::lost() const {
    return impl_->control->dead();
}

BindReply AgentClient::bind(const BindRequest& request, std::chrono::milliseconds timeout) {
    const auto connection = impl_->control;
    const auto data = impl_->data;
    const ClockShift clocks = impl_->shift;
    BindReply reply = ask(*connection, encodeBind(request, clocks), Steady::now() + timeout,
                          [&](const Json& json) { return decodeBind(json, request); });
    data->setClaim(request.claim_id);
    reply.bound_at = clocks.ours(reply.bound_at);
    return reply;
}

Deadlines AgentClient::setDeadlines(std::uint64_t epoch, std::optional<TimePoint> expires_at,
                                    std::optional<std::chrono::milliseconds> idle_timeout) {
    const ClockShift clocks = impl_->shift;  // on_lost may destroy this client meanwhile
    if (expires_at) expires_at = clocks.theirs(*expires_at);
    return shifted(
        impl_->askControl(encodeDeadlines(epoch, expires_at, idle_timeout), decodeDeadlines),
        clocks);
}

TimePoint AgentClient::touch(std::optional<std::chrono::milliseconds> patience) {
    const ClockShift clocks = impl_->shift;
    return clocks.ours(
        impl_->askControl(R"({"op":"touch"})", patience.value_or(impl_->timeout), decodeTouch));
}

AgentUsage AgentClient::usage(std::optional<std::chrono::milliseconds> patience) {
    return impl_->askControl(R"({"op":"usage"})", patience.value_or(impl_->timeout), decodeUsage);
}

void AgentClient::patience(std::chrono::milliseconds timeout) {
    impl_->timeout = timeout;
}

std::shared_ptr<ExecHandle> AgentClient::exec(const ExecRequest& request,
                                              const std::shared_ptr<ExecSink>& sink) {
    return impl_->start(encodeExec(request), request.id, 0, 0, request.output_limit, sink);
}

std::shared_ptr<ExecHandle> AgentClient::attach(const std::string& id, std::uint64_t offset,
                                                const std::shared_ptr<ExecSink>& sink,
                                                std::uint64_t output_limit, std::uint64_t results) {
    return impl_->start(
        dumpJson({{"op", "attach"}, {"id", id}, {"offset", offset}, {"results", results}}), id,
        offset, results, output_limit, sink);
}

void AgentClient::drive(const std::function<bool()>& done, std::chrono::milliseconds timeout) {
    const auto connection = impl_->control;
    connection->await(nullptr, done, Steady::now() + timeout);
}

std::shared_ptr<EgressHandle> AgentClient::broker(std::uint16_t port,
                                                  const std::shared_ptr<EgressSink>& sink) {
    const auto connection = impl_->control;
    auto stream = std::make_shared<EgressStream>(sink);
    const std::uint32_t number = connection->open(
        stream, dumpJson({{"op", "broker"}, {"port", port}, {"carry", true}}), impl_->deadline());
    return std::make_shared<Grants>(connection, std::move(stream), number, impl_->carrier);
}

void AgentClient::signal(const std::string& id, std::string_view name) {
    impl_->askControl(dumpJson({{"op", "signal"}, {"id", id}, {"signal", name}}), nothing);
}

void AgentClient::resize(const std::string& id, unsigned columns, unsigned rows) {
    impl_->askControl(dumpJson({{"op", "resize"}, {"id", id}, {"cols", columns}, {"rows", rows}}),
                      nothing);
}

void AgentClient::forget(const std::string& id) {
    impl_->askControl(dumpJson({{"op", "forget"}, {"id", id}}),
                      std::min<std::chrono::milliseconds>(impl_->timeout, kForgetPatience),
                      nothing);
}

void AgentClient::drain(std::uint64_t epoch) {
    impl_->askControl(dumpJson({{"op", "drain"}, {"epoch", epoch}}), nothing);
}

bool AgentClient::createContext(const ContextRequest& request, std::chrono::milliseconds timeout) {
    return impl_->askControl(encodeContext(request), timeout,
                             [&](const Json& json) { return decodeContext(json, request); });
}

void AgentClient::endContext(const std::string& id) {
    impl_->askControl(dumpJson({{"op", "contextEnd"}, {"id", id}}), nothing);
}

void AgentClient::restartContext(const std::string& id, std::chrono::milliseconds timeout) {
    impl_->askControl(dumpJson({{"op", "contextRestart"}, {"id", id}}), timeout, nothing);
}

void AgentClient::interruptContext(const std::string& id) {
    impl_->askControl(dumpJson({{"op", "interrupt"}, {"id", id}}), nothing);
}

void AgentClient::prewarm(const PrewarmRequest& request, Prewarmed done) {
    const auto connection = impl_->control;
    connection->open(std::make_shared<PrewarmStream>(request, std::move(done)),
                     encodePrewarm(request), impl_->deadline());
}

FileStat AgentClient::stat(const std::string& path, std::chrono::milliseconds timeout) {
    return impl_->askData(dumpJson({{"op", "stat"}, {"path", requestedPath(path)}}), decodeStat,
                          timeout);
}

void AgentClient::readFile(const std::string& path, std::uint64_t offset, std::uint64_t length,
                           const std::function<void(const FileStat&)>& begin,
                           const std::function<bool(std::string_view)>& chunk,
                           std::optional<std::chrono::milliseconds> timeout) {
    const auto connections = impl_->data;
    const auto until = timeout ? Steady::now() + *timeout : Steady::time_point::max();
    connections->run(std::min(until, connectBy()), [&](AgentConnection& connection, bool& begun) {
        Json request{
            {"op", "read"}, {"path", requestedPath(path)}, {"offset", offset}, {"length", length}};
        request["pass"] = true;
        Transfers& transfers = connections->transfers();
        if (download(connection, until, transfers, begun, request, begin, chunk)) return true;
        request.erase("pass");
        return download(connection, until, transfers, begun, request, begin, chunk);
    });
}

FileStat AgentClient::writeFile(const std::string& path, std::optional<unsigned> mode,
                                const std::function<std::size_t(char*, std::size_t)>& next) {
    Json request{{"op", "write"}, {"path", requestedPath(path)}, {"parents", true}};
    if (mode) request["mode"] = *mode;
    const FirstBytes first = firstBytes(next);
    if (!first.whole) request["pass"] = true;
    const auto connections = impl_->data;
    return connections->run(connectBy(), [&](AgentConnection& connection, bool& begun) {
        const Json reply =
            upload(connection, connections->transfers(), begun, request, first, next);
        return believing(connection, [&] { return decodeStat(reply); });
    });
}

void AgentClient::readArchive(const std::string& path,
                              const std::function<bool(std::string_view)>& chunk) {
    const auto connections = impl_->data;
    connections->run(connectBy(), [&](AgentConnection& connection, bool& begun) {
        download(
            connection, Steady::time_point::max(), connections->transfers(), begun,
            {{"op", "archiveGet"}, {"path", requestedPath(path)}}, [](const FileStat&) {}, chunk);
        return true;
    });
}

ArchiveCount AgentClient::writeArchive(const std::string& path,
                                       const std::function<std::size_t(char*, std::size_t)>& next) {
    const FirstBytes first = firstBytes(next);
    const auto connections = impl_->data;
    return connections->run(connectBy(), [&](AgentConnection& connection, bool& begun) {
        const Json reply =
            upload(connection, connections->transfers(), begun,
                   {{"op", "archivePut"}, {"path", requestedPath(path)}}, first, next);
        return believing(connection, [&] { return decodeArchiveCount(reply); });
    });
}

FileList AgentClient::list(const std::string& path, bool recursive, std::size_t limit,
                           const std::string& after) {
    Json request{
        {"op", "list"}, {"path", requestedPath(path)}, {"recursive", recursive}, {"limit", limit}};
    if (!after.empty()) request["after"] = requestedPath(after);
    return impl_->askData(dumpJson(request),
                          [limit](const Json& json) { return decodeList(json, limit); });
}

void AgentClient::makeDirectory(const std::string& path) {
    impl_->askData(dumpJson({{"op", "mkdir"}, {"path", requestedPath(path)}}), nothing);
}

void AgentClient::move(const std::string& from, const std::string& to) {
    impl_->askData(
        dumpJson({{"op", "move"}, {"from", requestedPath(from)}, {"to", requestedPath(to)}}),
        nothing);
}

void AgentClient::remove(const std::string& path, bool recursive) {
    impl_->askData(
        dumpJson({{"op", "remove"}, {"path", requestedPath(path)}, {"recursive", recursive}}),
        nothing);
}

FileChanges AgentClient::changes(TimePoint since, std::size_t limit,
                                 const std::vector<std::string>& globs,
                                 std::chrono::milliseconds timeout) {
    Json request{{"op", "changes"},
                 {"sinceNs", impl_->shift.theirs(since).time_since_epoch().count()},
                 {"limit", limit}};
    if (!globs.empty()) request["globs"] = globs;
    return impl_->askData(
        dumpJson(request), [limit](const Json& json) { return decodeChanges(json, limit); },
        timeout);
}

}  // namespace hearth::agent

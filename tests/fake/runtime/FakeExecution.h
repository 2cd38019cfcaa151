#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/Json.h"
#include "pool/agent/protocol/OutputLog.h"

namespace hearth::pool {

/// A stateful interpreter of a fake sandbox.
struct FakeContext {
    std::string id;
    std::string language;
    std::map<std::string, std::string> variables{};
    bool busy = false;
};

/// One execution of the echo language (FakeRuntime.h). Times are nanoseconds of the clock. Not
/// thread-safe.
class FakeExecution {
public:
    /// One result of the code: an entry of channel 3, placed after this much output.
    struct Shown {
        std::uint64_t behind = 0;
        std::uint64_t end = 0;  ///< where its bytes end in results()
    };

    /// Made from the request `exec`; begins at `now_ns`. `context`: null unless it runs in one.
    FakeExecution(const Json& request, std::shared_ptr<FakeContext> context, std::int64_t now_ns);

    const std::string& id() const { return id_; }
    const std::string& fingerprint() const { return fingerprint_; }
    const agent::OutputLog& output() const { return output_; }
    const std::string& results() const { return results_; }
    /// Returns the first result that does not end before `position`; null if there is none.
    const Shown* shownAt(std::uint64_t position) const;
    const FakeContext* context() const { return context_.get(); }
    /// True if its context died with it.
    bool tookContext() const { return context_ != nullptr && !running_ && !context_kept_; }
    Json started(bool repeated) const;
    std::int64_t startedAtNs() const { return started_at_ns_; }
    bool running() const { return running_; }
    bool background() const { return background_; }
    bool floods() const { return running_ && flood_left_ > 0; }

    /// False if it takes no input: its agent then stops the sender.
    bool reads() const { return reads_ || !running_; }
    void input(std::string_view bytes);
    void endOfInput(std::int64_t now_ns);
    void kill(int signal, std::int64_t now_ns);
    /// Sends SIGINT to the code: a context survives.
    void interrupt(std::int64_t now_ns);
    /// Continues, and ends what is due. What was due first happens first, however late this is.
    void work(std::int64_t now_ns);
    /// Valid once it has ended.
    Json result() const;

private:
    /// The time at which its agent ends it; far away without a time limit.
    std::int64_t endsBy() const;
    /// Runs statements until one needs time or all are done.
    void proceed(std::int64_t now_ns);
    /// Runs one statement of code; false if it is an ordinary command.
    bool interpret(const std::string& verb, const std::string& rest, std::int64_t now_ns);
    void begin(const std::string& line, std::int64_t now_ns);
    void show(const std::string& json);
    void raise(const std::string& name, const std::string& message, std::int64_t now_ns);
    void end(std::string status, int exit_code, int signal, std::int64_t now_ns);

    std::string id_;
    std::string fingerprint_;
    agent::OutputLog output_;
    std::string note_;  ///< JSON text; empty for none
    std::int64_t started_at_ns_ = 0;
    std::int64_t ended_at_ns_ = 0;
    std::int64_t wake_at_ns_ = 0;      ///< the end of a sleep; 0: none
    std::int64_t deadline_at_ns_ = 0;  ///< 0: none
    std::uint64_t flood_left_ = 0;
    std::deque<std::string> statements_;  ///< not yet run
    std::shared_ptr<FakeContext> context_;
    std::map<std::string, std::string> own_;  ///< variables outside of a context
    std::string interpreter_;
    std::string results_;
    std::vector<Shown> shown_;
    std::uint64_t dropped_results_ = 0;
    std::string report_;
    std::string prepared_;  ///< JSON text: an echo of its preparation, or a failure for `no-such`
    bool input_open_ = false;
    bool stubborn_ = false;
    bool context_kept_ = true;
    bool reads_ = false;
    bool running_ = true;
    bool background_ = false;
    int exit_code_ = 0;
    int signal_ = 0;
    std::string status_;
};

}  // namespace hearth::pool

#include "tests/fake/runtime/FakeExecution.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

namespace hearth::pool {
namespace {

constexpr std::uint64_t kFloodStep = 256U << 10U;
constexpr std::int64_t kSecond = 1'000'000'000;

template <typename T>
T numberOr(const std::string& text, T otherwise) {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() ? value : otherwise;
}

/// The command as one line of words.
std::string lineOf(const Json& request) {
    std::string line = request.value("command", "");
    if (!request.contains("argv")) return line;
    for (const Json& word : request["argv"])
        line += (line.empty() ? "" : " ") + word.get<std::string>();
    return line;
}

std::deque<std::string> linesOf(const std::string& code) {
    std::deque<std::string> lines;
    for (std::size_t at = 0; at < code.size();) {
        const std::size_t end = std::min(code.find('\n', at), code.size());
        if (end > at) lines.push_back(code.substr(at, end - at));
        at = end + 1;
    }
    return lines;
}

/// As in the protocol: these names act when an interpreter starts, so no warm one is usable.
bool needsCold(const Json& request) {
    if (!request.contains("env")) return false;
    for (const auto& [name, value] : request["env"].items()) {
        for (const char* prefix : {"PYTHON", "LD_", "OMP_", "MKL_", "OPENBLAS_"}) {
            if (name.starts_with(prefix)) return true;
        }
    }
    return false;
}

}  // namespace

FakeExecution::FakeExecution(const Json& request, std::shared_ptr<FakeContext> context,
                             std::int64_t now_ns)
    : id_(request.at("id").get<std::string>()),
      fingerprint_(request.at("fingerprint").get<std::string>()),
      output_(std::max<std::size_t>(request.value("outputLimit", std::size_t{1U << 20U}), 2)),
      note_(request.contains("note") ? request["note"].dump() : ""),
      started_at_ns_(now_ns),
      context_(std::move(context)),
      input_open_(request.value("stdin", false)),
      background_(request.value("background", false)) {
    const std::int64_t timeout_ms = request.value("timeoutMs", std::int64_t{0});
    if (timeout_ms > 0) deadline_at_ns_ = now_ns + timeout_ms * (kSecond / 1000);
    if (request.contains("code")) {
        interpreter_ = context_ ? "context" : needsCold(request) ? "cold" : "zygote";
        statements_ = linesOf(request["code"].get<std::string>());
    } else {
        statements_ = {lineOf(request)};
    }
    if (context_) context_->busy = true;
    if (request.contains("prepare")) {
        const std::string input = request["prepare"].value("input", "");
        const bool ok = input.find("no-such") == std::string::npos;
        prepared_ = dumpJson({{"ok", ok}, {"durationMs", 0}, {"output", input}, {"errors", ""}});
        if (!ok) end("failed", 1, 0, now_ns);
    }
    proceed(now_ns);
}

Json FakeExecution::started(bool repeated) const {
    Json started{{"id", id_},
                 {"startedAtNs", started_at_ns_},
                 {"repeated", repeated},
                 {"interpreter", interpreter_}};
    if (context_) started["context"] = context_->id;
    if (repeated && !note_.empty()) started["note"] = Json::parse(note_);
    return {{"started", std::move(started)}};
}

const FakeExecution::Shown* FakeExecution::shownAt(std::uint64_t position) const {
    for (const Shown& shown : shown_) {
        if (shown.end > position) return &shown;
    }
    return nullptr;
}

void FakeExecution::proceed(std::int64_t now_ns) {
    while (running_ && wake_at_ns_ == 0 && flood_left_ == 0 && !reads_) {
        if (statements_.empty()) return end("ok", 0, 0, now_ns);
        const std::string line = std::move(statements_.front());
        statements_.pop_front();
        begin(line, now_ns);
    }
}

void FakeExecution::begin(const std::string& line, std::int64_t now_ns) {
    const std::size_t blank = line.find(' ');
    const std::string verb = line.substr(0, blank);
    const std::string rest = blank == std::string::npos ? "" : line.substr(blank + 1);
    if (!interpreter_.empty() && interpret(verb, rest, now_ns)) return;
    if (verb == "cat" && rest.empty() && input_open_) {
        reads_ = true;
    } else if (verb == "sleep" || verb == "stubborn") {
        const double seconds = std::clamp(numberOr(rest, 0.0), 0.0, 1e9);
        wake_at_ns_ = now_ns + static_cast<std::int64_t>(seconds * static_cast<double>(kSecond));
        stubborn_ = verb == "stubborn";
    } else if (verb == "flood" && numberOr<std::uint64_t>(rest, 0) > 0) {
        flood_left_ = numberOr<std::uint64_t>(rest, 0);
    } else if (verb == "exit") {
        const int code = numberOr(rest, 0) & 0xFF;
        end(code == 0 ? "ok" : "failed", code, 0, now_ns);
    } else if (verb != "cat" || !rest.empty()) {
        output_.append(agent::Channel::Stdout, (verb == "echo" ? rest : line) + "\n");
    }
}

bool FakeExecution::interpret(const std::string& verb, const std::string& rest,
                              std::int64_t now_ns) {
    auto& variables = context_ ? context_->variables : own_;
    const std::size_t blank = rest.find(' ');
    const std::string first = rest.substr(0, blank);
    const std::string second = blank == std::string::npos ? "" : rest.substr(blank + 1);
    if (verb == "set") {
        variables[first] = second;
    } else if (verb == "get") {
        const auto found = variables.find(first);
        if (found == variables.end()) {
            raise("NameError", "name '" + first + "' is not defined", now_ns);
        } else {
            output_.append(agent::Channel::Stdout, found->second + "\n");
        }
    } else if (verb == "result") {
        show(rest);
    } else if (verb == "raise") {
        raise(first, second, now_ns);
    } else {
        return false;
    }
    return true;
}

void FakeExecution::show(const std::string& json) {
    if (json.size() > agent::kMaxResult || shown_.size() == agent::kMaxResults ||
        results_.size() + json.size() > agent::kMaxResultBytes || json.empty()) {
        ++dropped_results_;
        return;
    }
    std::array<unsigned char, 4> length;
    agent::putU32(length.data(), static_cast<std::uint32_t>(json.size()));
    results_.append(reinterpret_cast<const char*>(length.data()), length.size()).append(json);
    shown_.push_back({output_.total(), results_.size()});
}

void FakeExecution::raise(const std::string& name, const std::string& message,
                          std::int64_t now_ns) {
    report_ = dumpJson({{"name", name},
                        {"message", message},
                        {"traceback", "Traceback:\n" + name + ": " + message}});
    end("failed", 1, 0, now_ns);
}

void FakeExecution::input(std::string_view bytes) {
    if (running_ && reads_) output_.append(agent::Channel::Stdout, bytes);
}

void FakeExecution::endOfInput(std::int64_t now_ns) {
    if (!running_ || !reads_) return;
    reads_ = false;
    proceed(now_ns);
}

void FakeExecution::kill(int signal, std::int64_t now_ns) {
    if (!running_) return;
    if (context_ && signal == 2) return interrupt(now_ns);
    context_kept_ = false;
    end("killed", 128 + signal, signal, now_ns);
}

void FakeExecution::interrupt(std::int64_t now_ns) {
    if (running_ && !stubborn_) raise("KeyboardInterrupt", "", now_ns);
}

std::int64_t FakeExecution::endsBy() const {
    if (deadline_at_ns_ == 0) return std::numeric_limits<std::int64_t>::max();
    return deadline_at_ns_ + (context_ && stubborn_ ? kSecond : 0);
}

void FakeExecution::work(std::int64_t now_ns) {
    if (!running_) return;
    if (flood_left_ > 0) {
        static const std::string noise(kFloodStep, 'x');
        const std::uint64_t step = std::min(flood_left_, kFloodStep);
        output_.append(agent::Channel::Stdout, std::string_view(noise).substr(0, step));
        flood_left_ -= step;
        if (flood_left_ == 0) proceed(now_ns);
    } else if (wake_at_ns_ != 0 && now_ns >= wake_at_ns_ && wake_at_ns_ <= endsBy()) {
        wake_at_ns_ = 0;
        stubborn_ = false;
        proceed(now_ns);
    }
    if (!running_ || now_ns < endsBy()) return;
    if (context_ && !stubborn_) return end("timeout", 1, 0, now_ns);
    context_kept_ = false;
    end("timeout", 137, 9, now_ns);
}

void FakeExecution::end(std::string status, int exit_code, int signal, std::int64_t now_ns) {
    running_ = false;
    if (context_) context_->busy = false;
    status_ = std::move(status);
    exit_code_ = exit_code;
    signal_ = signal;
    ended_at_ns_ = now_ns;
}

Json FakeExecution::result() const {
    Json result{{"id", id_},
                {"status", status_},
                {"exitCode", exit_code_},
                {"signal", signal_},
                {"startedAtNs", started_at_ns_},
                {"endedAtNs", ended_at_ns_},
                {"cpuMs", 0},
                {"maxRssBytes", 1U << 20U},
                {"outputBytes", output_.total()},
                {"droppedBytes", output_.dropped()},
                {"interpreter", interpreter_},
                {"resultBytes", results_.size()},
                {"droppedResults", dropped_results_}};
    if (context_) result["contextKept"] = context_kept_;
    if (!report_.empty()) result["report"] = report_;
    if (!prepared_.empty()) result["prepared"] = Json::parse(prepared_);
    return result;
}

}  // namespace hearth::pool

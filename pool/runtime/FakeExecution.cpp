#include "pool/runtime/FakeExecution.h"

#include <algorithm>
#include <charconv>
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

/// What is to be run as one line of words.
std::string lineOf(const Json& request) {
    std::string line = request.value("command", "");
    if (line.empty()) line = request.value("code", "");
    if (!request.contains("argv")) return line;
    for (const Json& word : request["argv"])
        line += (line.empty() ? "" : " ") + word.get<std::string>();
    return line;
}

}  // namespace

FakeExecution::FakeExecution(const Json& request, std::int64_t now_ns)
    : id_(request.at("id").get<std::string>()),
      fingerprint_(request.at("fingerprint").get<std::string>()),
      output_(std::max<std::size_t>(request.value("outputLimit", std::size_t{1U << 20U}), 2)),
      started_at_ns_(now_ns),
      background_(request.value("background", false)) {
    const std::int64_t timeout_ms = request.value("timeoutMs", std::int64_t{0});
    if (timeout_ms > 0) deadline_at_ns_ = now_ns + timeout_ms * (kSecond / 1000);
    begin(lineOf(request), request.value("stdin", false));
}

void FakeExecution::begin(const std::string& line, bool input_open) {
    const std::size_t blank = line.find(' ');
    const std::string verb = line.substr(0, blank);
    const std::string rest = blank == std::string::npos ? "" : line.substr(blank + 1);
    if (verb == "cat" && rest.empty() && input_open) {
        reads_ = true;
    } else if (verb == "sleep") {
        const double seconds = std::clamp(numberOr(rest, 0.0), 0.0, 1e9);
        wake_at_ns_ =
            started_at_ns_ + static_cast<std::int64_t>(seconds * static_cast<double>(kSecond));
    } else if (verb == "flood" && numberOr<std::uint64_t>(rest, 0) > 0) {
        flood_left_ = numberOr<std::uint64_t>(rest, 0);
    } else if (verb == "exit") {
        const int code = numberOr(rest, 0) & 0xFF;
        end(code == 0 ? "ok" : "failed", code, 0, started_at_ns_);
    } else {
        if (verb != "cat" || !rest.empty()) {
            output_.append(agent::Channel::Stdout, (verb == "echo" ? rest : line) + "\n");
        }
        end("ok", 0, 0, started_at_ns_);
    }
}

void FakeExecution::input(std::string_view bytes) {
    if (running_ && reads_) output_.append(agent::Channel::Stdout, bytes);
}

void FakeExecution::endOfInput(std::int64_t now_ns) {
    if (running_ && reads_) end("ok", 0, 0, now_ns);
}

void FakeExecution::kill(int signal, std::int64_t now_ns) {
    if (running_) end("killed", 128 + signal, signal, now_ns);
}

void FakeExecution::work(std::int64_t now_ns) {
    if (!running_) return;
    if (flood_left_ > 0) {
        static const std::string noise(kFloodStep, 'x');
        const std::uint64_t step = std::min(flood_left_, kFloodStep);
        output_.append(agent::Channel::Stdout, std::string_view(noise).substr(0, step));
        flood_left_ -= step;
        if (flood_left_ == 0) end("ok", 0, 0, now_ns);
    } else if (wake_at_ns_ != 0 && now_ns >= wake_at_ns_) {
        end("ok", 0, 0, now_ns);
    }
    if (running_ && deadline_at_ns_ != 0 && now_ns >= deadline_at_ns_)
        end("timeout", 137, 9, now_ns);
}

void FakeExecution::end(std::string status, int exit_code, int signal, std::int64_t now_ns) {
    running_ = false;
    status_ = std::move(status);
    exit_code_ = exit_code;
    signal_ = signal;
    ended_at_ns_ = now_ns;
}

Json FakeExecution::result() const {
    return {{"id", id_},
            {"status", status_},
            {"exitCode", exit_code_},
            {"signal", signal_},
            {"startedAtNs", started_at_ns_},
            {"endedAtNs", ended_at_ns_},
            {"cpuMs", 0},
            {"maxRssBytes", 1U << 20U},
            {"outputBytes", output_.total()},
            {"droppedBytes", output_.dropped()},
            {"lingering", 0}};
}

}  // namespace hearth::pool

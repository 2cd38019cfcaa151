#include "metrics/LogWriter.h"

#include <algorithm>
#include <utility>

namespace hearth::metrics {
namespace {

constexpr std::chrono::milliseconds kLook{100};
constexpr std::chrono::milliseconds kLastWords{1000};

}  // namespace

LogWriter::LogWriter(const LogOutput& output, Metrics& metrics, std::size_t most, LogFormat format)
    : output_(output),
      metrics_(metrics),
      most_(most),
      format_(format),
      thread_([this](const std::stop_token& stop) { work(stop); }) {}

LogWriter::~LogWriter() {
    thread_.request_stop();
    thread_.join();
    const auto until = std::chrono::steady_clock::now() + kLastWords;
    const MutexLock lock(mutex_);
    for (drain(); !lines_.empty() && std::chrono::steady_clock::now() < until; drain()) {
        output_.waitWritable(kLook);
    }
    loseAll();
}

void LogWriter::add(std::string line) {
    const MutexLock lock(mutex_);
    const bool idle = lines_.empty();
    // After a gap, lines are accepted again only when half is free, so that gaps stay few.
    if (!idle && bytes_ + line.size() > (dropped_ > 0 ? most_ / 2 : most_)) {
        ++dropped_;
        metrics_.logDropped(1);
        return;
    }
    tellDropped();
    push({std::move(line)});
    if (idle) drain();
    if (!lines_.empty()) stalled_.notifyOne();
}

void LogWriter::push(Line line) {
    bytes_ += line.text.size();
    lines_.push_back(std::move(line));
}

void LogWriter::tellDropped() {
    if (dropped_ == 0) return;
    const std::uint64_t missing = std::exchange(dropped_, 0);
    push({Log::line(format_, "warn", "log.dropped",
                    {{"lines", missing}, {"why", "its reader had stalled"}}),
          missing});
}

void LogWriter::drain() {
    while (true) {
        if (lines_.empty()) tellDropped();
        if (lines_.empty()) return;
        std::string& text = lines_.front().text;
        const std::ptrdiff_t n = output_.write(text);
        if (n < 0) return loseAll();  // there is no reader any more, or the log's disk is full
        const auto taken = static_cast<std::size_t>(n);
        bytes_ -= taken;
        if (taken < text.size()) {
            text.erase(0, taken);
            return;
        }
        lines_.pop_front();
    }
}

void LogWriter::loseAll() {
    for (const Line& line : lines_) {
        dropped_ += std::max<std::uint64_t>(line.missing, 1);
        if (line.missing == 0) metrics_.logDropped(1);
    }
    lines_.clear();
    bytes_ = 0;
}

void LogWriter::work(const std::stop_token& stop) {
    UniqueMutexLock lock(mutex_);
    while (
        stalled_.wait(mutex_, stop, [this]() HEARTH_REQUIRES(mutex_) { return !lines_.empty(); })) {
        lock.unlock();
        output_.waitWritable(kLook);
        lock.lock();
        drain();
        if (stop.stop_requested()) return;
    }
}

}  // namespace hearth::metrics

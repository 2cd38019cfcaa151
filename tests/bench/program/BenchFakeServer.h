#pragma once

#include <sys/types.h>

#include <string>

#include "base/Fd.h"

namespace hearth::cli {

/// The program `hearth-fake` beside this one, on free ports of loopback, with a data directory that
/// is removed at the end. It shows what claims cost the server itself, without containers. The
/// destructor ends it and removes its leftovers. Needs root, as every server does.
class BenchFakeServer {
public:
    /// Waits up to ten seconds until it serves. Throws Error(Unavailable) with its last output.
    BenchFakeServer();
    ~BenchFakeServer();
    BenchFakeServer(const BenchFakeServer&) = delete;
    BenchFakeServer& operator=(const BenchFakeServer&) = delete;

    const std::string& url() const { return url_; }

private:
    void start();
    void waitUntilServing();
    void end() noexcept;

    std::string data_;
    std::string url_;
    Fd output_;
    pid_t child_ = -1;
};

/// Returns the URL in the greeting of a serving server; empty until there is one.
std::string greetedUrl(const std::string& output);

}  // namespace hearth::cli

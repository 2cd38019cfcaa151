#pragma once

#include <sys/types.h>

#include <string>

#include "base/Fd.h"

namespace hearth::cli {

/// The program `hearth-fake` beside this one, on free ports of loopback, with
/// a data directory that goes with it: what claims cost the server itself, without containers. The
/// destructor ends it and removes what it left. Needs root, as every server does.
class BenchFakeServer {
public:
    /// Gives it ten seconds to serve. Throws Error(Unavailable) with its last words.
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

/// The URL in the greeting of a server that serves; empty until there is one.
std::string greetedUrl(const std::string& output);

}  // namespace hearth::cli

#pragma once

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <thread>

#include "base/Error.h"

namespace hearth::test {

inline constexpr std::uint64_t kMiB = 1ULL << 20U;
inline constexpr std::uint64_t kGiB = 1ULL << 30U;

/// A new directory, removed with its content at the end.
class TempDir {
public:
    TempDir() {
        std::string pattern =
            (std::filesystem::temp_directory_path() / "hearth-unit-XXXXXX").string();
        if (::mkdtemp(pattern.data()) == nullptr) throwErrno("mkdtemp", pattern);
        path_ = pattern;
    }
    TempDir(const TempDir&) = delete;
    TempDir& operator=(const TempDir&) = delete;
    ~TempDir() {
        std::error_code ignored;  // a leftover below /tmp is no reason to fail a test
        std::filesystem::remove_all(path_, ignored);
    }
    const std::string& path() const { return path_; }
    std::string file(const std::string& name) const { return path_ + "/" + name; }

private:
    std::string path_;
};

/// Returns the code of the Error that `call` throws; nullopt if it throws none.
inline std::optional<ErrorCode> codeOf(const std::function<void()>& call) {
    try {
        call();
    } catch (const Error& e) {
        return e.code();
    }
    return std::nullopt;
}

/// Returns the Error that `call` throws; fails the test if there is none.
inline Error errorOf(const std::function<void()>& call) {
    try {
        call();
    } catch (const Error& e) {
        return e;
    }
    FAIL("no Error was thrown");
    throw std::logic_error("unreachable");
}

/// Yields the processor to other threads until `done` is true or a minute has passed.
inline bool eventually(const std::function<bool()>& done) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!done()) {
        if (std::chrono::steady_clock::now() > until) return false;
        std::this_thread::yield();
    }
    return true;
}

inline void writeText(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
}

inline std::string readText(const std::string& path) {
    std::ostringstream text;  // byte by byte, a large file would take minutes under a sanitizer
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
}

}  // namespace hearth::test

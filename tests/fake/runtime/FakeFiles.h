#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/Clock.h"
#include "base/Json.h"

namespace hearth::pool {

/// A refusal with an error code of PROTOCOL.md.
struct FakeRefusal {
    std::string code;
    std::string message;
    Json details = Json::object();  ///< further fields of the answer

    Json body() const;
};

/// The files of one fake sandbox, in memory. Each operation answers like the agent's operation of
/// that name, or throws FakeRefusal. Not thread-safe.
class FakeFiles {
public:
    FakeFiles(const Clock& clock, std::uint64_t capacity) : clock_(clock), capacity_(capacity) {}

    Json stat(const std::string& path) const;
    std::shared_ptr<const std::string> read(const std::string& path) const;
    /// Throws the same refusal as a write to that path.
    void checkWrite(const std::string& path) const;
    Json write(const std::string& path, std::optional<unsigned> mode, std::string bytes);
    Json list(const std::string& path, bool recursive, std::size_t limit,
              const std::string& after) const;
    void makeDirectory(const std::string& path);
    void move(const std::string& from, const std::string& to);
    void remove(const std::string& path, bool recursive);
    Json changes(std::int64_t since_ns, std::size_t limit,
                 const std::vector<std::string>& globs) const;
    std::uint64_t used() const;
    std::uint64_t capacity() const { return capacity_; }

private:
    struct Entry {
        std::shared_ptr<const std::string> content;  ///< null: a directory
        unsigned mode = 0644;
        std::int64_t modified_ns = 0;
        std::int64_t modified_unix_ms = 0;
    };

    static std::string clean(const std::string& path, const Json& details = Json::object());
    const Entry& at(const std::string& clean_path) const;
    Json describe(const std::string& clean_path, const Entry& entry) const;
    Entry made(std::shared_ptr<const std::string> content, unsigned mode) const;
    void makeParents(const std::string& clean_path);

    const Clock& clock_;
    const std::uint64_t capacity_;
    std::map<std::string, Entry> entries_;  ///< by clean path; without the root
};

}  // namespace hearth::pool

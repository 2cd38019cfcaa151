#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hearth::agent {

/// Encodes a piece of work in the form that zygote children and contexts read (PROTOCOL.md,
/// Drivers). No text may hold a NUL. `file` is the path of the code's file, empty if it has none.
inline std::string encodeWork(std::string_view kind, std::string_view cwd, std::string_view name,
                              std::string_view file, const std::vector<std::string>& env,
                              std::string_view code) {
    std::string body;
    const auto add = [&body](std::string_view text) { body.append(text).push_back('\0'); };
    for (const std::string_view text : {kind, cwd, name, file}) add(text);
    add(std::to_string(env.size()));
    for (const std::string& entry : env) add(entry);
    add(code);
    // The length counts its own digits.
    std::size_t length = body.size() + 2;
    while (std::to_string(length).size() + 1 + body.size() != length) ++length;
    return std::to_string(length) + '\0' + body;
}

}  // namespace hearth::agent

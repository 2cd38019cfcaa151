#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace hearth {

/// The kernel's table of open files, which all programs of the machine share
/// (/proc/sys/fs/file-nr). When it is full, nobody without privileges can open anything.
struct FileTable {
    std::uint64_t open = 0;
    std::uint64_t most = 0;
};

/// nullopt if the text is not of that form.
std::optional<FileTable> parseFileTable(const std::string& text);
/// Reads the table; nullopt if the kernel does not tell it. A table that is full, so that it cannot
/// be read, is told as full. Cheap.
std::optional<FileTable> fileTable(const std::string& path = "/proc/sys/fs/file-nr");

}  // namespace hearth

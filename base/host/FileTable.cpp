#include "base/host/FileTable.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <sstream>

#include "base/Fd.h"

namespace hearth {

std::optional<FileTable> parseFileTable(const std::string& text) {
    std::istringstream numbers(text);
    FileTable table;
    std::uint64_t unused = 0;
    if (!(numbers >> table.open >> unused >> table.most) || table.most == 0) return std::nullopt;
    return table;
}

std::optional<FileTable> fileTable(const std::string& path) {
    const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file && errno == ENFILE) return FileTable{.open = 1, .most = 1};
    std::array<char, 96> text{};
    const ssize_t n = file ? ::read(file.get(), text.data(), text.size()) : -1;
    return n > 0 ? parseFileTable({text.data(), static_cast<std::size_t>(n)}) : std::nullopt;
}

}  // namespace hearth

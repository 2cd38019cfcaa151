#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "api/cli/copy/Copy.h"
#include "api/cli/remote/References.h"

namespace hearth::cli {
namespace {

constexpr std::uint64_t kShown = 20;

CommandSpec spec() {
    return {
        .name = "cp",
        .arguments = "SRC… DST",
        .summary = "Copy files between this machine and a workspace.",
        .details =
            "  hearth cp data.csv ws_4f0c…:in/data.csv      one file, its mode too\n"
            "  hearth cp ws_4f0c…:out/plot.png .\n"
            "  hearth cp project ws_4f0c…:                  a directory, as ./project there\n"
            "  hearth cp ws_4f0c…:out results               and back\n"
            "  hearth cp project/. ws_4f0c…:src             what is in it\n"
            "  hearth cp a.csv b.csv mine:in/               several, into a directory\n"
            "  hearth cp ws_4f0c…:log.txt - | tail          to standard output\n"
            "  tar -c . | hearth cp --tar - ws_4f0c…:src    standard input, unpacked\n\n"
            "One side is WORKSPACE:PATH, relative to /workspace; ./a:b is a file of this\n"
            "machine. All is streamed; a directory goes as a tar, with or without -r. Links\n"
            "stay links. Files are replaced whole. What cannot be read, or is neither file nor\n"
            "directory nor link, is left out and reported (exit status 1). From a workspace\n"
            "nothing is written outside the destination: hostile names are refused, and links\n"
            "that may lead out of it are left out, too.",
        .flags =
            withClientFlags({Flag{.name = "follow",
                                  .letter = 'L',
                                  .help = "Copy the targets of local links instead of the links",
                                  .environment = false},
                             Flag{.name = "recursive",
                                  .letter = 'r',
                                  .help = "Has no effect: directories are copied anyway",
                                  .environment = false},
                             Flag{.name = "tar",
                                  .help = "- is a tar: unpack it there, or make one",
                                  .environment = false}}),
        .least = 2,
        .most = 1000,
        .operands = {"@remote"},
    };
}

/// An existing local file takes precedence over a workspace of that name.
std::optional<RemotePath> remotePath(const std::string& word) {
    std::error_code unknown;
    if (!word.starts_with("ws_") && std::filesystem::exists(word, unknown)) return std::nullopt;
    return RemotePath::parse(word);
}

void checkSources(const std::vector<std::string>& from, const std::string& to, bool into_workspace,
                  bool tar) {
    if (from.size() == 1) return;
    const bool pipe = std::ranges::find(from, "-") != from.end() || to == "-";
    if (tar || pipe)
        throw UsageError("- can only be a single source or destination", "copy it alone");
    std::error_code unknown;
    if (into_workspace ? !RemotePath::parse(to)->as_dir
                       : !std::filesystem::is_directory(to, unknown)) {
        throw UsageError(
            "several sources need a directory",
            into_workspace ? "write the destination with a slash at its end" : "make it first");
    }
}

int copy(const Invocation& call) {
    std::vector<std::string> from = call.options.positional();
    const std::string to = from.back();
    from.pop_back();
    auto remote_to = remotePath(to);
    for (const std::string& one : from) {
        if (remotePath(one).has_value() != remote_to.has_value()) continue;
        throw UsageError(remote_to ? "both paths are in workspaces" : "no path is in a workspace",
                         "hearth cp FILE WORKSPACE:PATH, or hearth cp WORKSPACE:PATH FILE");
    }
    const bool tar = call.options.on("tar");
    if (tar && (remote_to ? from[0] : to) != "-") {
        throw UsageError("--tar needs -", "without --tar a directory is copied as a directory");
    }
    checkSources(from, to, remote_to.has_value(), tar);
    if (!remote_to && to == "-" && tar && ::isatty(STDOUT_FILENO) == 1) {
        throw UsageError("a tar cannot be written to a terminal", "send it to a file or a program");
    }
    std::uint64_t told = 0;
    CopyOptions options{call.options.on("follow"), tar,
                        [&](const std::string& name, const std::string& why) {
                            if (++told > kShown) return;
                            call.console.note("left out: " + name + " " + why);
                        }};
    Remote remote(call.options);
    if (remote_to) remote_to->workspace = workspaceId(remote, remote_to->workspace);
    std::uint64_t left_out = 0;
    for (const std::string& one : from) {
        if (remote_to) {
            left_out += copyIn(remote, one, *remote_to, options);
            continue;
        }
        RemotePath path = *remotePath(one);
        path.workspace = workspaceId(remote, path.workspace);
        left_out += copyOut(remote, path, to, options);
    }
    if (left_out > kShown) {
        call.console.note("and " + std::to_string(left_out - kShown) + " more");
    }
    return left_out == 0 ? kOk : kFailure;
}

}  // namespace

Command makeCopy() {
    return {spec(), copy};
}

}  // namespace hearth::cli

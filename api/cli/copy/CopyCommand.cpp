#include <unistd.h>

#include "api/cli/copy/Copy.h"

namespace hearth::cli {
namespace {

constexpr std::uint64_t kShown = 20;

CommandSpec spec() {
    return {
        .name = "cp",
        .arguments = "SRC DST",
        .summary = "Copy files between this machine and a workspace.",
        .details =
            "  hearth cp data.csv ws_4f0c…:in/data.csv      one file, its mode too\n"
            "  hearth cp ws_4f0c…:out/plot.png .\n"
            "  hearth cp project ws_4f0c…:                  a directory, as ./project there\n"
            "  hearth cp ws_4f0c…:out results               and back\n"
            "  hearth cp project/. ws_4f0c…:src             what is in it\n"
            "  hearth cp ws_4f0c…:log.txt - | tail          to standard output\n"
            "  tar -c . | hearth cp --tar - ws_4f0c…:src    standard input, unpacked\n\n"
            "One side is WORKSPACE:PATH, relative to /workspace. All is streamed; a\n"
            "directory goes as a tar. Files are replaced whole. From a workspace nothing is\n"
            "written outside the destination: hostile names are refused, and links that may\n"
            "lead out of it are left out and reported (exit status 1).",
        .flags = withClientFlags({Flag{.name = "follow",
                                       .letter = 'L',
                                       .help = "Copy what local links lead to instead of the links",
                                       .environment = false},
                                  Flag{.name = "tar",
                                       .help = "- is a tar: unpack it there, or make one",
                                       .environment = false}}),
        .least = 2,
        .most = 2,
        .operands = {"@remote"},
    };
}

/// The server speaks of its archive; here there is a flag.
std::uint64_t copyInto(Remote& remote, const std::string& from, const RemotePath& to,
                       const CopyOptions& options) {
    try {
        return copyIn(remote, from, to, options);
    } catch (const RemoteError& e) {
        if (std::string(e.what()).find("is a link out of") == std::string::npos) throw;
        throw RemoteError(e.status(), e.what(), "--follow sends what links lead to instead",
                          e.code());
    }
}

int copy(const Invocation& call) {
    const std::string& from = call.options.positional()[0];
    const std::string& to = call.options.positional()[1];
    const auto remote_from = RemotePath::parse(from);
    const auto remote_to = RemotePath::parse(to);
    if (remote_from.has_value() == remote_to.has_value()) {
        throw UsageError(remote_from ? "both paths are in workspaces" : "no path is in a workspace",
                         "hearth cp FILE ws_…:PATH, or hearth cp ws_…:PATH FILE");
    }
    const bool tar = call.options.on("tar");
    if (tar && (remote_to ? from : to) != "-") {
        throw UsageError("--tar goes with -", "without it a directory is copied as one");
    }
    if (remote_from && to == "-" && tar && ::isatty(STDOUT_FILENO) == 1) {
        throw UsageError("a tar is nothing for a terminal", "send it to a file or a program");
    }
    std::uint64_t told = 0;
    CopyOptions options{call.options.on("follow"), tar,
                        [&](const std::string& name, const std::string& why) {
                            if (++told > kShown) return;
                            call.console.note("left out: " + name + " " + why);
                        }};
    Remote remote(call.options);
    const std::uint64_t left_out = remote_to ? copyInto(remote, from, *remote_to, options)
                                             : copyOut(remote, *remote_from, to, options);
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

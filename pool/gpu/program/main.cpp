#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <charconv>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "pool/gpu/nvml/NvmlLook.h"
#include "pool/gpu/program/Spawner.h"
#include "pool/gpu/scrub/MemoryScrub.h"
#include "pool/spec/GpuUuid.h"

namespace {

using namespace hearth::pool;

constexpr const char* kUsage =
    "usage: hearth-gpu look                look at the GPUs once\n"
    "       hearth-gpu watch               look at them for each line of standard input\n"
    "       hearth-gpu scrub UUID          overwrite a GPU's memory, once no process uses it\n"
    "       hearth-gpu serve               for the server: start these by requests on descriptor "
    "3\n"
    "Each prints one line of JSON. Flags, after these words:\n"
    "  --library FILE        NVIDIA's management library (libnvidia-ml.so.1)\n"
    "  --cuda FILE           CUDA's driver library (libcuda.so.1)\n"
    "  --process-wait MS     how long scrub waits for other processes to end (10000)\n"
    "Exit status: 0 done, 1 no GPU or not clean, 2 wrong arguments.\n";

struct Arguments {
    std::string command;
    std::string library = "libnvidia-ml.so.1";
    gpu::ScrubOrder scrub;
    std::vector<std::string> flags;  ///< as given, for programs that `serve` starts
};

std::chrono::milliseconds milliseconds(const std::string& flag, const std::string& value) {
    std::uint32_t number = 0;
    const char* end = value.data() + value.size();
    const auto read = std::from_chars(value.data(), end, number);
    if (read.ec == std::errc() && read.ptr == end) return std::chrono::milliseconds(number);
    throw std::invalid_argument(flag + " takes milliseconds, 0 to 4294967295, not \"" + value +
                                "\"");
}

/// Throws std::invalid_argument that names the fault.
Arguments parse(const std::vector<std::string>& words) {
    if (words.empty()) throw std::invalid_argument("a command is missing");
    Arguments all;
    all.command = words[0];
    std::size_t at = 1;
    if (all.command == "scrub") {
        all.scrub.uuid = words.size() > 1 ? words[at++] : "";
        if (!isGpuUuid(all.scrub.uuid)) {
            throw std::invalid_argument(
                "scrub takes the uuid of a device, as look prints it, not \"" + all.scrub.uuid +
                "\"");
        }
    } else if (all.command != "look" && all.command != "watch" && all.command != "serve") {
        throw std::invalid_argument("\"" + all.command + "\" is not a command");
    }
    all.flags.assign(words.begin() + static_cast<std::ptrdiff_t>(at), words.end());
    for (; at < words.size(); at += 2) {
        const std::string& flag = words[at];
        const bool known = flag == "--library" || flag == "--cuda" || flag == "--process-wait";
        if (!known) throw std::invalid_argument("\"" + flag + "\" is not a flag");
        if (at + 1 == words.size()) throw std::invalid_argument(flag + " lacks its value");
        const std::string& value = words[at + 1];
        if (flag == "--library") all.library = value;
        if (flag == "--cuda") all.scrub.cuda = value;
        if (flag == "--process-wait") all.scrub.process_wait = milliseconds(flag, value);
    }
    return all;
}

/// Returns false if nobody reads any more.
bool say(const std::string& line) {
    const std::string text = line + "\n";
    for (std::size_t done = 0; done < text.size();) {
        const ssize_t n = ::write(1, text.data() + done, text.size() - done);
        if (n < 0) return false;
        done += static_cast<std::size_t>(n);
    }
    return true;
}

/// Without a library there is nothing to watch; the end of the program shows that, too.
int watch(const Arguments& arguments, bool once) {
    std::optional<gpu::Nvml> nvml;
    std::string absence;
    std::string line;
    if (!once && !std::getline(std::cin, line)) return 0;
    try {
        nvml.emplace(arguments.library);
    } catch (const std::exception& e) {
        say(gpu::encodeLook({.absence = e.what()}));
        return 1;
    }
    gpu::NvmlLook look(*nvml);
    for (;;) {
        const gpu::GpuLook seen = look.look();
        if (!say(gpu::encodeLook(seen))) return 1;
        if (once) return seen.absence.empty() ? 0 : 1;
        if (!std::getline(std::cin, line)) return 0;
    }
}

int scrub(const Arguments& arguments) {
    GpuScrub done;
    try {
        const gpu::Nvml nvml(arguments.library);
        done = gpu::scrubDevice(nvml, arguments.scrub);
    } catch (const std::exception& e) {
        done.why = e.what();
    }
    return say(gpu::encodeScrub(done)) && done.clean ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    ::prctl(PR_SET_NAME, "hearth-gpu");  // needed because it is started by descriptor
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);  // the server, with the same user, cannot write into it
    const rlimit no_core{0, 0};            // a core would contain the device's data
    ::setrlimit(RLIMIT_CORE, &no_core);
    try {
        const Arguments arguments = parse({argv + 1, argv + argc});
        if (arguments.command == "scrub") return scrub(arguments);
        if (arguments.command != "serve") return watch(arguments, arguments.command == "look");
        gpu::serveRequests({.arguments = arguments.flags});
        return 0;
    } catch (const std::invalid_argument& e) {
        std::cerr << "hearth-gpu: " << e.what() << '\n' << kUsage;
        return 2;
    } catch (const std::exception& e) {
        std::cerr << "hearth-gpu: " << e.what() << '\n';
        return 1;
    }
}

#include "tests/bench/program/BenchOptions.h"

#include <algorithm>
#include <charconv>

#include "tests/bench/program/BenchPool.h"

namespace hearth::cli {
namespace {

constexpr unsigned kMostClients = 100;  // less than the server's 128 workers

/// Returns the parts between commas, also the empty ones.
std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> parts;
    for (std::size_t start = 0; start <= text.size();) {
        const std::size_t end = std::min(text.find(',', start), text.size());
        parts.push_back(text.substr(start, end - start));
        start = end + 1;
    }
    return parts;
}

std::string joined(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : ",") + word;
    return text;
}

std::set<std::string> chosenNames(const std::string& only) {
    if (only.empty()) return {benchNames().begin(), benchNames().end()};
    std::set<std::string> chosen;
    for (const std::string& name : split(only)) {
        if (std::ranges::find(benchNames(), name) == benchNames().end()) {
            throw unknownWord("--only \"" + name + "\" is unknown", name, benchNames());
        }
        chosen.insert(name);
    }
    return chosen;
}

std::vector<unsigned> listOf(const Options& options, const std::string& flag, unsigned most) {
    const std::optional<std::string> text = options.get(flag);
    return text ? numberList(flag, *text, most) : std::vector<unsigned>{};
}

}  // namespace

const std::vector<std::string>& benchNames() {
    static const std::vector<std::string> kNames = {"noop",   "claim",  "shell",   "parked",
                                                    "python", "numpy",  "context", "cold",
                                                    "file",   "oneshot"};
    return kNames;
}

std::vector<unsigned> numberList(const std::string& flag, const std::string& text, unsigned most) {
    std::vector<unsigned> numbers;
    for (const std::string& part : split(text)) {
        unsigned value = 0;
        const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
        if (error != std::errc{} || end != part.data() + part.size() || value == 0 ||
            value > most) {
            throw UsageError("--" + flag + " holds \"" + part + "\"",
                             "give whole numbers from 1 to " + std::to_string(most) +
                                 " with commas, such as 1,4,16");
        }
        if (std::ranges::find(numbers, value) == numbers.end()) numbers.push_back(value);
    }
    return numbers;
}

std::vector<Flag> benchFlags() {
    const auto flag = [](const char* name, const char* value, std::string help,
                         const char* fallback = "") {
        return Flag{.name = name,
                    .value = value,
                    .help = std::move(help),
                    .fallback = fallback,
                    .environment = false};
    };
    std::vector<Flag> flags = {
        flag("pool", "NAME", "The pool"),
        flag("rounds", "N", "Rounds that count; 0 leaves them out", "150"),
        flag("only", "LIST", "Some of " + joined(benchNames())),
        flag("concurrency", "LIST", "Numbers of clients whose throughput to measure: 1,4,16,64"),
        flag("operations", "N", "The most of one kind for each number of clients", "2000"),
        flag("pools", "LIST", "Sizes of pools to fill, claim from and refill: 10,100,1000"),
        flag("fake-pools", "LIST", "The same on a server of its own with fake sandboxes; as root"),
        flag("against", "WHAT", "docker: measure it beside, and print the ratio"),
        flag("docker-image", "IMAGE", "An image the Engine has"),
        flag("docker-rootfs", "DIR", "A root file system to import"),
        flag("pid", "PID", "The server, for its memory; else found by name"),
        flag("allow-busy", "", "Tell times also where others use more than 15 % of the processors"),
        flag("svg", "FILE", "Write a chart of the rounds"),
        flag("json", "", "Print JSON"),
    };
    flags[0].letter = 'p';
    for (Flag& f : flags) {  // the flags that may be set once for every call
        f.environment = f.name == "pool" || f.name == "docker-image" || f.name == "docker-rootfs" ||
                        f.name == "rounds" || f.name == "json";
    }
    return flags;
}

BenchPlan benchPlan(const Options& options) {
    BenchPlan plan;
    plan.names = chosenNames(options.get("only", ""));
    plan.rounds = static_cast<int>(options.number("rounds", 150, 0, 1'000'000));
    plan.clients = listOf(options, "concurrency", kMostClients);
    plan.operations = static_cast<std::size_t>(options.number("operations", 2000, 1, 1'000'000));
    plan.pools = listOf(options, "pools", BenchPool::kMostMembers);
    plan.fake_pools = listOf(options, "fake-pools", BenchPool::kMostMembers);
    plan.pool = options.get("pool", "");
    const std::string against = options.get("against", "");
    if (!against.empty() && against != "docker") {
        throw UsageError("--against \"" + against + "\" is unknown", "use docker");
    }
    plan.docker = !against.empty();
    plan.docker_image = options.get("docker-image", "");
    plan.docker_rootfs = options.get("docker-rootfs", "");
    if (!plan.docker_image.empty() && !plan.docker_rootfs.empty()) {
        throw UsageError("--docker-image and --docker-rootfs exclude each other",
                         "for a fair comparison give the root file system of the pool's image");
    }
    if (options.get("pid")) {
        plan.pid = static_cast<pid_t>(options.number("pid", 0, 1, 1 << 22));
    }
    plan.json = options.on("json");
    plan.svg = options.get("svg", "");
    plan.allow_busy = options.on("allow-busy");
    if (plan.rounds == 0 && plan.docker) {
        throw UsageError("--against docker is measured in rounds, and --rounds is 0",
                         "leave one of them out");
    }
    if (plan.rounds == 0 && !plan.svg.empty()) {
        throw UsageError("--svg shows rounds, and --rounds is 0", "leave one of them out");
    }
    if (!plan.measuresServer() && plan.fake_pools.empty()) {
        throw UsageError("nothing is left to measure",
                         "give --rounds, --concurrency, --pools or --fake-pools");
    }
    return plan;
}

}  // namespace hearth::cli

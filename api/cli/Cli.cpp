#include "api/cli/Cli.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <sstream>
#include <system_error>

#include "api/cli/commands/Commands.h"
#include "api/cli/completion/Completion.h"
#include "api/cli/copy/Copy.h"
#include "api/cli/doctor/Doctor.h"
#include "api/cli/remote/Kinds.h"
#include "api/cli/remote/Remote.h"
#include "api/cli/top/Top.h"
#include "api/command/OutputFormat.h"
#include "base/Error.h"
#include "base/http/client/ClientConnection.h"

namespace hearth::cli {
namespace {

std::string overview(const std::vector<Command>& commands) {
    std::string text =
        "Hearth keeps containers warm and hands each request an isolated workspace.\n\n"
        "usage: hearth COMMAND [flags]\n\ncommands:\n";
    for (const Command& command : commands) {
        std::string line = "  " + command.spec.name;
        line.resize(std::max<std::size_t>(line.size() + 2, 14), ' ');
        text += line + command.spec.summary + "\n";
    }
    text +=
        "\n`hearth help COMMAND` says more. Clients use HEARTH_URL and HEARTH_TOKEN; flags with\n"
        "[HEARTH_…] in their help have that variable, too. Colours only on a terminal, and not "
        "with NO_COLOR.\n"
        "`hearth completion` makes a shell complete all this.\n\n" +
        exitStatusText() + "\n";
    return text;
}

/// Finds the command for a word of other programs.
std::string ourWordFor(const std::string& word) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 31> kMeant = {{
        {"stats", "top"},
        {"status", "ps"},
        {"jobs", "ps"},
        {"inspect", "describe"},
        {"show", "describe"},
        {"close", "rm"},
        {"end", "rm"},
        {"sh", "shell"},
        {"put", "cp"},
        {"push", "cp"},
        {"cat", "cp WORKSPACE:FILE -"},
        {"pull", "image import"},
        {"build", "image import"},
        {"list", "ls"},
        {"kill", "stop"},
        {"create", "open"},
        {"new", "open"},
        {"claim", "open"},
        {"start", "serve"},
        {"up", "serve"},
        {"bash", "shell"},
        {"ssh", "shell"},
        {"edit", "apply"},
        {"diff", "apply --dry-run -f FILE"},
        {"wait", "logs -f EXECUTION"},
        {"history", "get events"},
        {"login", "token"},
        {"install", "packages install"},
        {"info", "get capabilities"},
        {"images", "image list"},
        {"tokens", "token list"},
    }};
    for (const auto& [other, ours] : kMeant) {
        if (word == other) return std::string(ours);
    }
    return {};
}

const Command& findCommand(const std::vector<Command>& commands, const std::string& name) {
    std::vector<std::string> names{"help"};
    for (const Command& command : commands) {
        if (command.spec.name == name) return command;
        names.push_back(command.spec.name);
    }
    if (name.starts_with("-")) {
        throw UsageError("the flag " + name + " is before the command",
                         "write it after it: hearth COMMAND " + name);
    }
    std::string hint = "see `hearth help`";
    if (const std::string ours = ourWordFor(name); !ours.empty()) {
        hint = "type `hearth " + ours + "`";
    } else if (const auto near = suggestion(name, names)) {
        hint = "did you mean `hearth " + *near + "`?";
    } else if (const auto kind = suggestion(name, kindWords())) {
        hint = "type `hearth get " + std::string(findKind(*kind)->many) + "`";
    }
    throw UsageError("unknown command \"" + name + "\"", hint);
}

/// Turns `hearth --url URL ls` into `hearth ls --url URL`: flags of every client may come first.
std::vector<std::string> commandFirst(std::vector<std::string> arguments) {
    const std::vector<Flag> flags = withClientFlags(withOutputFlags({}, true));
    std::size_t at = 0;
    while (at < arguments.size() && arguments[at].size() > 1 && arguments[at][0] == '-') {
        const std::string& word = arguments[at];
        const auto flag = std::ranges::find_if(flags, [&](const Flag& known) {
            return word.starts_with("--") ? word.substr(2, word.find('=') - 2) == known.name
                                          : word[1] == known.letter;
        });
        if (flag == flags.end()) return arguments;
        const bool joined =
            word.starts_with("--") ? word.find('=') != std::string::npos : word.size() > 2;
        at += flag->value.empty() || joined ? 1 : 2;
    }
    if (at < arguments.size()) {
        std::rotate(arguments.begin(), arguments.begin() + static_cast<std::ptrdiff_t>(at),
                    arguments.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    }
    return arguments;
}

int perform(const Command& command, const std::vector<std::string>& arguments,
            const Console& console, const Environment& environment) {
    const Options options = Options::parse(command.spec, arguments, environment);
    if (options.help()) {
        console.out << helpText(command.spec);
        return kOk;
    }
    return command.run({options, console, environment});
}

int dispatch(const std::vector<std::string>& given, const Console& console,
             const Environment& environment) {
    const std::vector<std::string> arguments = commandFirst(given);
    const std::vector<Command> commands = allCommands();
    const std::string name = arguments.empty() ? "" : arguments[0];
    if (name.empty()) {
        console.err << overview(commands);
        return kUsage;
    }
    if (name == "--version" || name == "-v" || name == "-V")
        return perform(findCommand(commands, "version"), {}, console, environment);
    if (name == "help" || name == "--help" || name == "-h") {
        if (arguments.size() > 1 && arguments[1] != "help" && arguments[1][0] != '-') {
            console.out << helpText(findCommand(commands, arguments[1]).spec);
        } else {
            console.out << overview(commands);
        }
        return kOk;
    }
    if (name == "__complete") {  // called by the scripts of `hearth completion`
        const std::vector<std::string> words(arguments.begin() + 1, arguments.end());
        for (const Candidate& one :
             completions(commands, words, serverLookup(words, environment))) {
            console.out << printable(one.word) << (one.about.empty() ? "" : "\t")
                        << printable(one.about) << '\n';
        }
        return kOk;
    }
    return perform(findCommand(commands, name), {arguments.begin() + 1, arguments.end()}, console,
                   environment);
}

int statusOf(const Error& error) {
    switch (error.code()) {
        case ErrorCode::NotFound:
        case ErrorCode::Gone:
            return kNotFound;
        case ErrorCode::Unavailable:
            return kUnreachable;
        case ErrorCode::InvalidSpec:  // a manifest that this program read
            return kUsage;
        default:
            return kFailure;
    }
}

/// Lists each fault once: the lines of the message, then the fields that it leaves out.
std::vector<std::string> problemsOf(const Error& error) {
    const std::string message = error.what();
    if (error.fields().empty()) return {message};
    std::vector<std::string> problems;
    std::istringstream lines(message);
    for (std::string line; std::getline(lines, line);) problems.push_back(line);
    for (const FieldError& field : error.fields()) {
        if (message.find(field.pointer + " " + field.reason) != std::string::npos) continue;
        problems.push_back(field.pointer + ": " + field.reason);
    }
    return problems;
}

/// The advice for a failure without its own hint.
std::string hintFor(const Error& error) {
    const auto* exchange = dynamic_cast<const http::ExchangeError*>(&error);
    if (exchange != nullptr && exchange->kind() == http::ExchangeError::Kind::Distrust) {
        return "--ca-file (HEARTH_CA_FILE) names the authorities to trust; the name is that of "
               "--url";
    }
    if (error.code() != ErrorCode::Unavailable) return {};
    return "is the server running? see `hearth doctor` and --url";
}

/// Turns exceptions of `run` into messages and a status. `serves`: the command is the server
/// itself, so no hint says that the server may not be running.
int guarded(const std::function<int()>& run, const Console& console, bool serves) {
    try {
        return run();
    } catch (const UsageError& e) {
        console.error(e.what(), e.hint());
        return kUsage;
    } catch (const RemoteError& e) {
        console.error(e.what(), e.hint());
        return exitStatusOf(e);
    } catch (const Error& e) {
        const std::string hint = e.hint().empty() && !serves ? hintFor(e) : e.hint();
        const std::vector<std::string> problems = problemsOf(e);
        for (std::size_t i = 0; i < problems.size(); ++i) {
            console.error(problems[i], i + 1 < problems.size() ? "" : hint);
        }
        return serves ? kFailure : statusOf(e);
    } catch (const std::exception& e) {
        console.error(e.what());
        return kFailure;
    }
}

/// Runs with the streams, colours and environment of the process.
int withProcess(int argc, char** argv,
                const std::function<int(const std::vector<std::string>&, const Console&,
                                        const Environment&)>& run) {
    // If a reader goes away (`hearth get … | head`), a write must fail, not kill the process.
    std::signal(SIGPIPE, SIG_IGN);
    const char* no_colour = std::getenv("NO_COLOR");  // an empty value counts as unset
    const bool colour = no_colour == nullptr || *no_colour == '\0';
    const Console console{std::cout, std::cerr, colour && ::isatty(STDOUT_FILENO) == 1,
                          colour && ::isatty(STDERR_FILENO) == 1};
    const Environment environment = [](const std::string& name) -> std::optional<std::string> {
        const char* value = std::getenv(name.c_str());
        return value == nullptr ? std::nullopt : std::optional<std::string>(value);
    };
    const int status =
        run(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc), console, environment);
    std::cout.flush();
    return status;
}

}  // namespace

int runCommand(const std::vector<std::string>& arguments, const Console& console,
               const Environment& environment) {
    const bool serves = !arguments.empty() && arguments[0] == "serve";
    return guarded([&] { return dispatch(arguments, console, environment); }, console, serves);
}

int runCommand(int argc, char** argv) {
    return withProcess(argc, argv,
                       [](const auto& arguments, const auto& console, const auto& environment) {
                           return runCommand(arguments, console, environment);
                       });
}

int runProgram(int argc, char** argv, const Command& command) {
    return withProcess(
        argc, argv, [&](const auto& arguments, const auto& console, const auto& environment) {
            return guarded([&] { return perform(command, arguments, console, environment); },
                           console, false);
        });
}

std::vector<Command> allCommands() {
    return {makeRun(),         makeExec(),     makeShell(),    makeOpen(),      makeList(),
            makeRemove(),      makeCopy(),     makePs(),       makeTop(),       makeLogs(),
            makeAttach(),      makeStop(),     makeGet(),      makeDescribe(),  makeExplain(),
            makeApply(),       makeScale(),    makeSchedule(), makeDelete(),    makeDrain(),
            makeUndrain(),     makeImage(),    makeToken(),    makeQuota(),     makeUsage(),
            makeGpu(),         makeMcp(),      makePackages(), makeMcpConfig(), makeSimulate(),
            makeAgentFolder(), makeCrds(),     makeServe(),    makeConfig(),    makeDoctor(),
            makeCompletion(),  makeLogLevel(), makeVersion()};
}

}  // namespace hearth::cli

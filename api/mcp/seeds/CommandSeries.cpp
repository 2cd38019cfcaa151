#include "api/mcp/seeds/CommandSeries.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "base/Ids.h"

namespace hearth::mcp::seeds {
namespace {

constexpr std::string_view kMark = "hearth-command-";
constexpr std::size_t kMarkSize = kMark.size() + 32;

constexpr const char* kProgram = R"(mark=$1; shift; number=0
for command do
  sh -c -- "$command" </dev/null
  status=$?
  number=$((number + 1))
  printf '%s %s %s\n' "$mark" "$number" "$status"
  printf '%s %s %s\n' "$mark" "$number" "$status" >&2
  [ "$status" = 0 ] || exit "$status"
done)";

struct Mark {
    std::size_t begin = 0;
    std::size_t end = 0;  ///< after its line
    std::size_t number = 0;
    int status = 0;
};

/// Reads a number and the character that must follow it.
template <typename Number>
bool readNumber(std::string_view text, std::size_t& at, char behind, Number& number) {
    const char* const begin = text.data() + at;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(begin, end, number);
    if (error != std::errc{} || stop == end || *stop != behind) return false;
    at += static_cast<std::size_t>(stop - begin) + 1;
    return true;
}

std::optional<Mark> nextMark(std::string_view text, const std::string& mark, std::size_t from) {
    for (std::size_t at = text.find(mark, from); at != std::string_view::npos;
         at = text.find(mark, at + 1)) {
        Mark found{at, at + mark.size() + 1, 0, 0};
        if (found.end > text.size() || text[found.end - 1] != ' ') continue;
        if (readNumber(text, found.end, ' ', found.number) &&
            readNumber(text, found.end, '\n', found.status)) {
            return found;
        }
    }
    return std::nullopt;
}

struct Channel {
    std::map<std::size_t, std::string> texts;  ///< by the command's number, from 1
    std::map<std::size_t, int> statuses;
};

Channel split(std::string_view text, const std::string& mark) {
    Channel channel;
    std::size_t at = 0;
    std::size_t last = 0;
    while (const auto found = nextMark(text, mark, at)) {
        channel.texts[found->number] = text.substr(at, found->begin - at);
        channel.statuses[found->number] = found->status;
        at = found->end;
        last = found->number;
    }
    if (at < text.size()) channel.texts[last + 1] = text.substr(at);
    return channel;
}

}  // namespace

CommandSeries commandSeries(const std::vector<std::string>& commands) {
    CommandSeries series;
    series.mark = newId(kMark);
    series.argv = {"sh", "-c", kProgram, "sh", series.mark};
    series.argv.insert(series.argv.end(), commands.begin(), commands.end());
    return series;
}

std::string withoutMarks(std::string_view output) {
    std::string text;
    std::size_t at = 0;
    for (std::size_t begin = output.find(kMark); begin != std::string_view::npos;
         begin = output.find(kMark, begin + 1)) {
        const std::string_view mark = output.substr(begin, kMarkSize);
        if (!isId(mark, kMark)) continue;
        const auto found = nextMark(output, std::string(mark), begin);
        if (!found || found->begin != begin) continue;
        text += output.substr(at, begin - at);
        at = found->end;
    }
    return text += output.substr(at);
}

std::vector<CommandResult> seriesResults(const std::vector<std::string>& commands,
                                         const std::string& mark,
                                         const controller::ExecutionView& view) {
    const Channel out = split(view.stdout_bytes, mark);
    const Channel err = split(view.stderr_bytes, mark);
    std::map<std::size_t, int> statuses = out.statuses;
    statuses.insert(err.statuses.begin(), err.statuses.end());
    std::size_t ran = statuses.empty() ? 0 : statuses.rbegin()->first;
    // One more had begun, unless all commands ran or one failed.
    const bool ended = ran == commands.size() || (ran > 0 && statuses.rbegin()->second != 0);
    if (!ended) ++ran;
    std::vector<CommandResult> results;
    for (std::size_t number = 1; number <= std::min(ran, commands.size()); ++number) {
        CommandResult result;
        result.command = commands[number - 1];
        const auto status = statuses.find(number);
        if (status != statuses.end()) {
            result.exit_code = status->second;
        } else if (number < ran) {
            result.exit_code = 0;
        }
        const auto text = [number](const Channel& channel) {
            const auto found = channel.texts.find(number);
            return found == channel.texts.end() ? std::string() : found->second;
        };
        result.stdout_bytes = text(out);
        result.stderr_bytes = text(err);
        results.push_back(std::move(result));
    }
    return results;
}

}  // namespace hearth::mcp::seeds

#pragma once

#include <string>
#include <vector>

#include "api/cli/remote/Remote.h"
#include "api/cli/remote/Tables.h"
#include "api/command/Command.h"

namespace hearth::cli {

/// One kind of object that a server lists.
struct Kind {
    const char* one;
    const char* many;
    const char* abbreviation;  ///< as typed for `get`
    TableOf table;
    TableOf wide;
};

const std::vector<Kind>& kinds();
/// Finds it by either word or the abbreviation; null if there is none.
const Kind* findKind(const std::string& word);
/// The words of all kinds, for suggestions.
std::vector<std::string> kindWords();

/// The flags that choose items of a list: --workspace, --pool, --tenant, --label, --type and
/// --resource.
std::vector<Flag> filterFlags();
/// Throws UsageError for a given filter that this kind does not have; with `one`, for any filter: a
/// single object is not filtered.
void checkFilters(const Kind& kind, const Options& options, bool one);
/// Fields and their values that the filters require, except the filters that the server applies.
using WantedFields = std::vector<std::pair<std::string, std::string>>;
WantedFields wantedFields(Remote& remote, const Kind& kind, const Options& options);
bool hasFields(const Json& item, const WantedFields& wanted);
/// All items that pass the filters.
std::vector<Json> itemsOf(Remote& remote, const Kind& kind, const Options& options);

/// The word with which a command names the item.
std::string nameOf(const Json& item);
/// Prints items in the format that the call wants; says so if there are none.
void showItems(const Invocation& call, const Kind& kind, const std::vector<Json>& items);
/// Prints the items that pass the filters, and notes missing ones.
void showList(const Invocation& call, const Kind& kind, Remote& remote);
/// Prints one object; `hearth get KIND NAME`.
void showItem(const Invocation& call, const Json& item);

}  // namespace hearth::cli

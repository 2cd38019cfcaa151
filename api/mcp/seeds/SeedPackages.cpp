#include "api/mcp/seeds/SeedPackages.h"

#include <algorithm>
#include <charconv>

#include "api/mcp/tools/RunEnd.h"
#include "base/http/Url.h"
#include "controller/contract/RequestLimits.h"
#include "controller/packages/PackageSpec.h"

namespace hearth::mcp::seeds {
namespace {

using controller::ExecutionView;
using controller::PackagesRequest;
using controller::PackagesStatus;
using controller::PackageStage;
using controller::PackagesView;
using controller::Services;

constexpr std::string_view kNote = "hearth.dev/install.";
/// The most notes on one workspace: fewer than its allowed labels, because others need room.
constexpr std::size_t kMostNotes = 40;
constexpr std::size_t kLongestNote = 200;

/// Returns the label, with the name in the form of Python's indexes: "Foo_Bar" is "foo-bar".
std::string noteOf(const std::string& spec) {
    std::string name = toLower(nameIn(spec));
    std::replace_if(
        name.begin(), name.end(), [](char c) { return c == '_' || c == '.'; }, '-');
    return std::string(kNote) + name.substr(0, kLongestNote);
}

void note(const Services& services, const CallContext& call, const std::string& workspace,
          const std::vector<std::string>& specs, const std::string& execution) {
    controller::WorkspacePatch patch;
    patch.labels.emplace();
    const auto labels = services.workspaces.get(call.who, workspace).labels;
    const auto is_note = [](const auto& label) { return label.first.starts_with(kNote); };
    const auto notes = std::count_if(labels.begin(), labels.end(), is_note);
    const std::size_t others = labels.size() - static_cast<std::size_t>(notes);
    const std::size_t most =
        std::min(kMostNotes, controller::kMostLabels - std::min(others, controller::kMostLabels));
    if (static_cast<std::size_t>(notes) + specs.size() > most) {
        // The environment itself shows the result of a finished install.
        for (const auto& label : labels) {
            if (is_note(label)) (*patch.labels)[label.first] = std::nullopt;
        }
    }
    const std::string value = execution + "@" + std::to_string(toUnixMillis(services.clock.wall()));
    for (std::size_t i = 0; i < std::min(specs.size(), most); ++i) {
        (*patch.labels)[noteOf(specs[i])] = value;
    }
    services.workspaces.patch(call.who, workspace, patch);
}

PackagesRequest pipRequest() {
    PackagesRequest request;
    request.manager = controller::PackageManager::Pip;
    request.timeout = kLongestRun;
    return request;
}

std::vector<std::string> namesIn(const std::vector<std::string>& specs) {
    std::vector<std::string> names;
    for (const std::string& spec : specs) names.push_back(nameIn(spec));
    return names;
}

// NOLINTBEGIN(performance-unnecessary-value-param): the frame keeps them
Task<ToolResult> whenDone(const Services& services, CallContext call,
                          std::shared_ptr<controller::Execution> execution,
                          std::vector<std::string> names, OnCancel on_cancel, TimePoint until,
                          TellPackages tell) {
    // NOLINTEND(performance-unnecessary-value-param)
    Task<> end = untilEnd(services, std::move(call), execution, on_cancel, until);
    co_await end;
    execution->requireAnswer();
    co_return tell(controller::PackageService::viewOf(*execution, names), execution->view());
}

/// Marks packages that do not fit the request as failed: without a network none is installed.
void judge(PackagesView& view, const std::vector<std::string>& specs) {
    for (const std::string& spec : specs) {
        controller::PackageState& package = view.packages[nameIn(spec)];
        const bool any = nameIn(spec) == spec;
        if (package.state == PackageStage::Installed &&
            (any || spec == nameIn(spec) + "==" + package.version)) {
            continue;
        }
        package.error = package.state == PackageStage::Installed
                            ? "the image has " + package.version +
                                  ", and this sandbox has no way to a package index"
                            : "it is not in the image, and this sandbox has no way to a package "
                              "index: an operator gives a pool network Mirror";
        package.state = PackageStage::Failed;
        view.status = PackagesStatus::Failed;
    }
}

}  // namespace

std::string nameIn(const std::string& spec) {
    const std::string name = controller::packageName(spec);
    return name.empty() ? spec : name;
}

ToolOutcome installPackages(const Services& services, const CallContext& call,
                            const std::string& workspace, const std::vector<std::string>& specs,
                            std::optional<std::chrono::milliseconds> wait, TellPackages tell) {
    PackagesRequest request = pipRequest();
    const bool offline =
        services.workspaces.get(call.who, workspace).network == egress::NetworkMode::None;
    if (offline) {
        for (const std::string& spec : specs) {
            if (const auto why = controller::wrongSpec(spec, controller::PackageManager::Pip)) {
                throw Error(ErrorCode::InvalidArgument, spec + " " + *why);
            }
        }
        request.check = namesIn(specs);
        tell = [specs, tell = std::move(tell)](PackagesView view, const ExecutionView& run) {
            if (view.status != PackagesStatus::Running) judge(view, specs);
            return tell(view, run);
        };
    } else {
        request.install = specs;
    }
    const auto execution = services.packages.begin(call.who, workspace, request).execution;
    if (!offline) note(services, call, workspace, specs, execution->id());
    // The install belongs to the workspace, not to the call: a caller that stops waiting can ask
    // for it later.
    return whenDone(services, call, execution, namesIn(specs), OnCancel::LeavesRunning,
                    wait ? services.clock.now() + *wait : TimePoint::max(), std::move(tell));
}

ToolOutcome checkPackages(const Services& services, const CallContext& call,
                          const std::string& workspace, const std::vector<std::string>& specs,
                          TellPackages tell) {
    PackagesRequest request = pipRequest();
    request.check = namesIn(specs);
    const auto execution = services.packages.begin(call.who, workspace, request).execution;
    return whenDone(services, call, execution, request.check, OnCancel::Kills, TimePoint::max(),
                    std::move(tell));
}

std::optional<NotedInstall> installNoted(const Services& services, const CallContext& call,
                                         const std::string& workspace, const std::string& spec) {
    const auto labels = services.workspaces.get(call.who, workspace).labels;
    const auto found = labels.find(noteOf(spec));
    if (found == labels.end()) return std::nullopt;
    const std::size_t at = found->second.find('@');
    if (at == std::string::npos) return std::nullopt;
    NotedInstall noted;
    try {
        noted.execution = services.executions.find(call.who, found->second.substr(0, at));
    } catch (const Error& error) {
        // The execution is no longer known; the environment shows its result.
        if (error.code() != ErrorCode::NotFound && error.code() != ErrorCode::Gone) throw;
        return std::nullopt;
    }
    std::int64_t began = 0;
    const char* const end = found->second.data() + found->second.size();
    std::from_chars(found->second.data() + at + 1, end, began);
    noted.elapsed_seconds =
        static_cast<double>(toUnixMillis(services.clock.wall()) - began) / 1000.0;
    return noted;
}

std::string packageFault(const PackagesView& view) {
    std::string text = toUtf8(view.error);
    for (const auto& [name, package] : view.packages) {
        if (package.state == PackageStage::Installed || package.error.empty() ||
            package.error == view.error) {
            continue;
        }
        text += (text.empty() ? "" : "; ") + toUtf8(name + ": " + package.error);
    }
    return text.empty() ? "the package manager failed" : text;
}

}  // namespace hearth::mcp::seeds

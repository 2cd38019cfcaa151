#include "controller/queue/Lanes.h"

#include <array>

namespace hearth::controller {
namespace {

// Two workers where no work waits: the scheduler may delay one. Creates and
// destroys have as many as the launcher has places for them. Images: three that claims wait
// for are in work at once, other image work in groups by kind. A question waits for one machine.
constexpr std::array<LaneRules, kLanes> kLaneRules{{{"records", 2, 0},
                                                    {"pools", 2, 0},
                                                    {"creates", 6, 2},
                                                    {"destroys", 5, 1},
                                                    {"images", 5, 1},
                                                    {"looks", 2, 1},
                                                    {"forgets", 2, 1},
                                                    {"asks", 4, 1},
                                                    {"gpus", 4, 1},
                                                    {"probes", 1, 0}}};

struct KindRules {
    std::string_view name;
    Lane lane;
};
/// Indexed by WorkKind.
constexpr std::array<KindRules, kWorkKinds> kKinds{
    {{"execution", Lane::Records}, {"oneshot", Lane::Records}, {"oneshot-adopted", Lane::Asks},
     {"lost", Lane::Asks},         {"overdue", Lane::Asks},    {"weight", Lane::Records},
     {"pool", Lane::Pools},        {"create", Lane::Creates},  {"sandbox", Lane::Destroys},
     {"unpack", Lane::Images},     {"image", Lane::Images},    {"images", Lane::Images},
     {"layer", Lane::Images},      {"layers", Lane::Images},   {"artifacts", Lane::Images},
     {"sweep", Lane::Images},      {"forget", Lane::Forgets},  {"suspect", Lane::Asks},
     {"orphans", Lane::Asks},      {"measure", Lane::Asks},    {"pause", Lane::Asks},
     {"gpu", Lane::Gpus},          {"gpus", Lane::Asks},       {"probe", Lane::Probes},
     {"probes", Lane::Probes},     {"usage", Lane::Asks},      {"files", Lane::Looks}}};

}  // namespace

const LaneRules& rulesOf(Lane lane) {
    return kLaneRules[static_cast<std::size_t>(lane)];
}

std::string_view nameOf(WorkKind kind) {
    return kKinds[static_cast<std::size_t>(kind)].name;
}

Lane laneOf(WorkKind kind) {
    return kKinds[static_cast<std::size_t>(kind)].lane;
}

}  // namespace hearth::controller

#pragma once

#include <filesystem>
#include <string>

namespace hearth::controller {

// Paths of an instance's state, below its data directory.

inline std::string databasePath(const std::string& data_dir) {
    return data_dir + "/state/hearth.db";
}
/// Created at the first start; its existence marks the instance as used.
inline std::string secretKeyPath(const std::string& data_dir) {
    return data_dir + "/state/key";
}
/// Outside the state folder, and empty until the state exists: it remains if the whole state is
/// lost.
inline std::string usedPath(const std::string& data_dir) {
    return data_dir + "/used";
}
/// True if a server has run here before.
inline bool usedBefore(const std::string& data_dir) {
    return std::filesystem::exists(secretKeyPath(data_dir)) ||
           (std::filesystem::exists(usedPath(data_dir)) &&
            std::filesystem::file_size(usedPath(data_dir)) > 0);
}
inline std::string tokenHistoryPath(const std::string& data_dir) {
    return data_dir + "/state/had-tokens";
}

}  // namespace hearth::controller

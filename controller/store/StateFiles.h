#pragma once

#include <filesystem>
#include <string>

namespace hearth::controller {

// Where an instance keeps its state, below its data directory.

inline std::string databasePath(const std::string& data_dir) {
    return data_dir + "/state/hearth.db";
}
/// Made at the first start: with it the instance counts as used.
inline std::string secretKeyPath(const std::string& data_dir) {
    return data_dir + "/state/key";
}
/// Stands outside the state, and is empty until that is there: what is left where the state is lost
/// whole.
inline std::string usedPath(const std::string& data_dir) {
    return data_dir + "/used";
}
/// A server was here before.
inline bool usedBefore(const std::string& data_dir) {
    return std::filesystem::exists(secretKeyPath(data_dir)) ||
           (std::filesystem::exists(usedPath(data_dir)) &&
            std::filesystem::file_size(usedPath(data_dir)) > 0);
}
inline std::string tokenHistoryPath(const std::string& data_dir) {
    return data_dir + "/state/had-tokens";
}

}  // namespace hearth::controller

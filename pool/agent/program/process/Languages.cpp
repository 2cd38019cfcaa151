#include "pool/agent/program/process/Languages.h"

#include <sys/stat.h>

#include <cstdlib>

#include "pool/agent/program/core/Settings.h"
#include "pool/spec/LanguageProbe.h"

namespace hearth::agent {

namespace {

constexpr std::size_t kMaxTable = 65'536;

std::vector<std::string> expand(const JsonValue& words, const std::string& path) {
    std::vector<std::string> out;
    for (const JsonValue& word : words.items()) {
        std::string text(word.text());
        for (std::size_t at = 0; (at = text.find("{file}", at)) != std::string::npos;) {
            text.replace(at, 6, path);
            at += path.size();
        }
        out.push_back(std::move(text));
    }
    return out;
}

std::string quoted(const std::vector<std::string>& words) {
    std::string line;
    for (const std::string& word : words) {
        line += " '";
        for (const char c : word) {
            if (c == '\'') {
                line += "'\\''";
            } else {
                line.push_back(c);
            }
        }
        line.push_back('\'');
    }
    return line;
}

std::string find(std::string_view program, std::string_view path) {
    while (!path.empty()) {
        const std::size_t colon = path.find(':');
        std::string file(path.substr(0, colon));
        path.remove_prefix(colon == std::string_view::npos ? path.size() : colon + 1);
        if (file.empty() || file[0] != '/') continue;
        file += '/';
        file += program;
        struct stat st {};
        if (stat(file.c_str(), &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 0111U) != 0)
            return file;
    }
    return {};
}

JsonValue probe() {
    const char* own = std::getenv("PATH");
    const std::string path = std::string(own != nullptr ? own : "") + ":" + pool::kUsualPath;
    JsonValue table = JsonValue::object();
    for (const pool::LanguageProbe& each : pool::kLanguageProbes) {
        if (table[each.language].isObject()) continue;
        std::string program = find(each.program, path);
        if (program.empty()) continue;
        JsonValue how = JsonValue::object();
        how.set("file", each.file);
        const auto set = [&](const char* key, const char* driver, const char* argument) {
            if (*driver == '\0' && *argument == '\0') return;
            JsonValue words = JsonValue::array();
            words.push(program);
            if (*driver != '\0') words.push(driver);
            if (*argument != '\0') words.push(argument);
            how.set(key, std::move(words));
        };
        set("run", each.runner, "{file}");
        if (*each.runner == '\0') how.set("channel", false);
        set("zygote", each.zygote, "");
        set("context", each.context, "");
        table.set(each.language, std::move(how));
    }
    return table;
}

}  // namespace

Languages::Languages(const std::string& path, const JsonValue& found) {
    std::string text;
    JsonValue table;
    if (readFile(path.c_str(), kMaxTable, text) && JsonValue::parse(text, table) &&
        table.isObject()) {
        table_ = std::move(table);
    } else {
        table_ = found.isObject() ? found : probe();
    }
}

bool Languages::has(std::string_view language) const {
    const std::string name = file(language);
    return !name.empty() && name != ".." && name != "." && name != "report" &&
           name.find('/') == std::string::npos && !table_[language]["run"].items().empty();
}

std::string Languages::file(std::string_view language) const {
    return std::string(table_[language]["file"].text());
}

bool Languages::speaks(std::string_view language) const {
    return table_[language]["channel"].boolean(true);
}

std::vector<std::string> Languages::zygote(std::string_view language) const {
    return expand(table_[language]["zygote"], "");
}

std::vector<std::string> Languages::context(std::string_view language) const {
    return expand(table_[language]["context"], "");
}

std::vector<std::string> Languages::command(std::string_view language,
                                            const std::string& path) const {
    std::vector<std::string> run = expand(table_[language]["run"], path);
    const std::vector<std::string> compile = expand(table_[language]["compile"], path);
    if (compile.empty()) return run;
    return {"/bin/sh", "-c", quoted(compile).substr(1) + " && exec" + quoted(run)};
}

}  // namespace hearth::agent

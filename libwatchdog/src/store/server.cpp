#include "store/server.h"

#include <atomic>
#include <cstdlib>

#include "text/utf8.h"

namespace watchdog {
namespace {

std::atomic<OpenServer> opener{nullptr};

}  // namespace

bool is_server_url(const std::filesystem::path& database) {
  const std::string_view name = database.native();
  return name.starts_with("postgresql:/") || name.starts_with("postgres:/");
}

std::string_view storable(std::string_view text, std::string& own) {
  if (text.find('\0') == text.npos && is_utf8(text)) return text;
  own.clear();
  while (!text.empty()) {
    const auto size = text.front() == '\0' ? 0 : character_bytes(text);
    if (size == 0) {
      own += "\xEF\xBF\xBD";
      text.remove_prefix(1);
    } else {
      own.append(text.substr(0, size));
      text.remove_prefix(size);
    }
  }
  return own;
}

std::filesystem::path folder_beside(const std::filesystem::path& database) {
  if (!is_server_url(database)) return database.parent_path();
  const auto env = [](const char* name) -> std::string {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets it
    return value != nullptr ? value : "";
  };
  if (const auto state = env("XDG_STATE_HOME"); !state.empty())
    return std::filesystem::path(state) / "watchdog";
  const auto home = env("HOME");
  return std::filesystem::path(home.empty() ? "/tmp" : home) / ".local/state/watchdog";
}

void use_servers(OpenServer open) noexcept {
  opener.store(open);
}

Result<std::unique_ptr<StoreServer>> open_server(const std::filesystem::path& url, bool write) {
  const auto open = opener.load();
  if (open == nullptr) {
    return Error{ErrorCode::invalid,
                 "this program cannot use a database on a server. Agents use an SQLite file, or "
                 "report over HTTP to a monitor; a monitor needs to be built with libpq"};
  }
  return open(url.native(), write);
}

}  // namespace watchdog

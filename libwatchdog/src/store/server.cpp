#include "store/server.h"

#include <atomic>
#include <charconv>

#include "store/place.h"
#include "text/utf8.h"

namespace watchdog {
namespace {

std::atomic<OpenServer> opener{nullptr};

std::string percent_decoded(std::string_view text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    unsigned value = 0;
    const auto* digits = text.data() + at + 1;
    if (text[at] == '%' && text.size() - at > 2 &&
        std::from_chars(digits, digits + 2, value, 16).ptr == digits + 2) {
      plain += static_cast<char>(value);
      at += 2;
    } else {
      plain += text[at];
    }
  }
  return plain;
}

/// Returns true for `//USER:PASSWORD@HOST`, and for `?password=…` as libpq reads it.
bool has_password(std::string_view url) {
  const auto begin = url.find("//");
  if (begin == url.npos) return false;
  const auto user = url.substr(begin + 2, url.find_first_of("/?#", begin + 2) - begin - 2);
  if (const auto end = user.rfind('@'); end != user.npos && user.find(':') < end) return true;
  const auto query = url.find('?');
  for (auto from = query; from != url.npos; from = url.find('&', from + 1)) {
    const auto name =
        percent_decoded(url.substr(from + 1, url.find_first_of("=&", from + 1) - from - 1));
    if (name == "password" || name == "sslpassword") return true;
  }
  return false;
}

}  // namespace

bool is_server_url(const std::filesystem::path& database) {
  const std::string_view name = database.native();
  return name.starts_with("postgresql:/") || name.starts_with("postgres:/");
}

Result<void> check_database_url(const std::filesystem::path& database) {
  if (!is_server_url(database) || !has_password(database.native())) return {};
  return Error{ErrorCode::invalid,
               "the database's URL has a password, which others on this machine could read. "
               "Take it out of the URL, and write it to ~/.pgpass (mode 0600) as "
               "HOST:PORT:DATABASE:USER:PASSWORD, or name such a file in PGPASSFILE"};
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
  const auto folder = state_folder();
  return folder.empty() ? std::filesystem::path("/nowhere") : folder;
}

void use_servers(OpenServer open) noexcept {
  opener.store(open);
}

Result<std::unique_ptr<StoreServer>> open_server(const std::filesystem::path& url, bool write) {
  if (auto allowed = check_database_url(url); !allowed) return allowed.error();
  const auto open = opener.load();
  if (open == nullptr) {
    return Error{ErrorCode::invalid,
                 "this program cannot use a database on a server. Agents use an SQLite file, or "
                 "report over HTTP to a monitor; a monitor needs to be built with libpq"};
  }
  return open(url.native(), write);
}

}  // namespace watchdog

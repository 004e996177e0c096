#include "cli/session_choice.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "api/target.h"
#include "cli/session_names.h"
#include "codec/progress.h"
#include "facts/ids.h"
#include "terminal/phrases.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

std::string folder_of(const json& row) {
  const auto labels = row.find("labels");
  return labels != row.end() && labels->is_object() ? labels->value("cwd", std::string())
                                                    : std::string();
}

/// `named`: a path, or the folder's own name.
bool is_in(const json& row, const std::string& named) {
  const std::filesystem::path folder(folder_of(row));
  // A subagent works in the folder of its parent.
  if (folder.empty() || !row.value("parentSessionId", json()).is_null()) return false;
  if (folder.filename() == named) return true;
  std::error_code unknown;
  const auto path = std::filesystem::absolute(named, unknown).lexically_normal();
  return folder == (path.has_filename() ? path : path.parent_path());
}

/// As with git, fewer characters than four are a slip. Of an id that somebody chose, `job-1` is not
/// the beginning of `job-12`, but another job; a subagent's id begins with its parent's.
bool begins_with(const json& row, const std::string& named) {
  const auto id = row.value("sessionId", std::string());
  const bool is_random = short_id(id) != id;
  return is_random && named.size() >= 4 && id.starts_with(named);
}

/// Sessions that run are meant before those that ended.
std::vector<json> running_first(std::vector<json> found) {
  const auto has_ended = [](const json& row) { return !row.value("outcome", json()).is_null(); };
  if (!std::ranges::all_of(found, has_ended)) std::erase_if(found, has_ended);
  return found;
}

Error several(const std::string& named, const std::vector<json>& found) {
  constexpr std::size_t named_max = 5;
  std::string text = "'" + named + "' names " + std::to_string(found.size()) + " sessions:";
  for (std::size_t at = 0; at < std::min(found.size(), named_max); ++at)
    text += "\n  " + shown(found[at], "sessionId") + "  " + title_in(found[at]);
  if (found.size() > named_max)
    text += "\n  and " + std::to_string(found.size() - named_max) + " more";
  return {ErrorCode::invalid, std::move(text), "session"};
}

}  // namespace

CLI::Option* add_session(CLI::App& command, SessionChoice& choice) {
  auto* named =
      command.add_option("session", choice.named,
                         "Session: its id, the beginning of its id, or the folder it works in");
  command.add_flag("--last", choice.last, "The session that began last")->excludes(named);
  return named;
}

void need_session(const SessionChoice& choice, const char* or_else) {
  if (!choice.named.empty() || choice.last) return;
  throw CLI::RequiredError(or_else == nullptr ? std::string("session or --last")
                                              : "session, --last or " + std::string(or_else));
}

Result<std::string> session_of(Endpoint& endpoint, const SessionChoice& choice) {
  if (is_session_id(choice.named)) {
    const auto there =
        endpoint.ask(Method::get, "/api/autonomous/progress/" + url_encoded(choice.named));
    if (there) return choice.named;
    if (there.error().code != ErrorCode::not_found) return there.error();
  }
  // Older sessions are found by their whole id alone.
  const auto rows = newest_sessions(endpoint);
  if (!rows) return rows.error();
  if (choice.last && rows->empty()) return Error{ErrorCode::not_found, "no session was found"};
  if (choice.last) return (*rows)[0]["sessionId"].get<std::string>();
  for (const auto is_meant : {begins_with, is_in}) {
    std::vector<json> found;
    for (const auto& row : *rows)
      if (is_meant(row, choice.named)) found.push_back(row);
    found = running_first(std::move(found));
    if (found.size() == 1) return found[0]["sessionId"].get<std::string>();
    if (found.size() > 1) return several(choice.named, found);
  }
  return Error{ErrorCode::not_found, "unknown session " + choice.named};
}

Result<std::string> acted_on(Endpoint& endpoint, const SessionChoice& choice) {
  auto found = session_of(endpoint, choice);
  const bool is_unknown = !found && (found.error().code == ErrorCode::not_found ||
                                     found.error().code == ErrorCode::invalid);
  if (found || is_unknown || !is_session_id(choice.named)) return found;
  return choice.named;
}

}  // namespace watchdog::monitor

#include "api/assets.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "ingest/gzip.h"

namespace watchdog::monitor {
namespace {

constexpr std::string_view folder = "/assets/";
constexpr std::string_view for_ever = "public, max-age=31536000, immutable";

constexpr std::size_t file_bytes_max = 4'000'000;  // the build's own files: they are far smaller

std::vector<EmbeddedFile> unpacked_files() {
  std::vector<EmbeddedFile> files;
  for (const auto& [name, gzipped] : packed_files())
    files.push_back({name, inflated(gzipped, file_bytes_max).value(), gzipped});
  return files;
}

std::string place_of_all() {
  std::uint64_t hash = 14'695'981'039'346'656'037U;  // FNV-1a
  const auto add = [&](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1'099'511'628'211U;
  };
  for (const auto& file : embedded_files()) {
    add(file.name);
    add(file.content);
  }
  std::string text(folder);
  for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[hash >> shift & 15U];
  return text;
}

std::string_view type_of(std::string_view name) {
  if (name.ends_with(".js")) return "text/javascript; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  if (name.ends_with(".json")) return "application/schema+json";
  if (name.ends_with(".yaml")) return "application/yaml";
  return "image/svg+xml";
}

/// The page's icon with the number of sessions that need a person, which is in the name of the
/// file: `count-7.svg`. Nothing where the name is another.
std::optional<std::string> counting_icon(std::string_view name) {
  constexpr std::string_view begin = "count-", end = ".svg";
  if (!name.starts_with(begin) || !name.ends_with(end)) return std::nullopt;
  const auto digits = name.substr(begin.size(), name.size() - begin.size() - end.size());
  const bool is_number = !digits.empty() && digits.size() <= 3 &&
                         std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
  if (!is_number) return std::nullopt;
  const auto shown = digits.size() == 3 ? std::string("99+") : std::string(digits);
  const std::string size = shown.size() == 3 ? "15" : "20";
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 32 32\">" +
         std::string("<rect width=\"32\" height=\"32\" rx=\"8\" fill=\"#c81e2b\"/>") +
         "<text x=\"16\" y=\"23\" fill=\"#fff\" font-family=\"sans-serif\" " +
         "font-weight=\"700\" text-anchor=\"middle\" font-size=\"" + size + "\">" + shown +
         "</text></svg>";
}

bool is_schema(std::string_view name) {
  return name.ends_with(".yaml") || name.ends_with(".json");
}

/// Returns the file, compressed if the request accepts that; 304 if the client has it. Returns
/// nothing for an unknown name.
std::optional<Response> embedded_file(std::string_view name, const Request& request,
                                      std::string_view cache_control) {
  const auto files = embedded_files();
  const auto file = std::ranges::find(files, name, &EmbeddedFile::name);
  if (file == files.end()) return std::nullopt;
  const bool gzip = request.accept_encoding.find("gzip") != std::string::npos;
  const auto version = std::string_view(assets_path()).substr(folder.size());
  const auto tag = '"' + std::string(version) + (gzip ? "-gzip\"" : "\"");
  Response response{.content_type = std::string(type_of(name)),
                    .extra_headers = "ETag: " + tag + "\r\nVary: Accept-Encoding\r\n",
                    .cache_control = std::string(cache_control)};
  if (request.if_none_match.find(tag) != std::string::npos) {
    response.status = 304;
    return response;
  }
  if (gzip) response.extra_headers += "Content-Encoding: gzip\r\n";
  response.body = gzip ? file->gzipped : file->content;
  return response;
}

}  // namespace

std::span<const EmbeddedFile> embedded_files() {
  static const std::vector<EmbeddedFile> files = unpacked_files();
  return files;
}

const std::string& assets_path() {
  static const std::string path = place_of_all();
  return path;
}

std::vector<std::string_view> modules_of(std::vector<std::string_view> entries) {
  constexpr std::string_view from_here = " from './", end = "';";
  const auto files = embedded_files();
  auto found = std::move(entries);
  for (std::size_t at = 0; at < found.size(); ++at) {
    const auto file = std::ranges::find(files, found[at], &EmbeddedFile::name);
    if (file == files.end()) continue;
    const std::string_view text = file->content;
    for (auto from = text.find(from_here); from != std::string_view::npos;
         from = text.find(from_here, from)) {
      from += from_here.size();
      const auto name = text.substr(from, text.find(end, from) - from);
      if (std::ranges::find(found, name) == found.end()) found.push_back(name);
    }
  }
  return found;
}

std::optional<Response> asset(std::string_view place, std::string_view name,
                              const Request& request) {
  if (place != std::string_view(assets_path()).substr(folder.size())) return std::nullopt;
  if (auto icon = counting_icon(name))
    return Response{.body = std::move(*icon),
                    .content_type = std::string(type_of(name)),
                    .cache_control = std::string(for_ever)};
  return is_schema(name) ? std::nullopt : embedded_file(name, request, for_ever);
}

std::optional<Response> schema_file(std::string_view name, const Request& request) {
  return is_schema(name) ? embedded_file(name, request, "no-cache") : std::nullopt;
}

}  // namespace watchdog::monitor

#include "api/assets.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace watchdog::monitor {
namespace {

constexpr std::string_view folder = "/assets/";

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
  return "image/svg+xml";
}

}  // namespace

const std::string& assets_path() {
  static const std::string path = place_of_all();
  return path;
}

std::optional<Response> asset(std::string_view place, std::string_view name,
                              const Request& request) {
  if (place != std::string_view(assets_path()).substr(folder.size())) return std::nullopt;
  const auto files = embedded_files();
  const auto file = std::ranges::find(files, name, &EmbeddedFile::name);
  if (file == files.end()) return std::nullopt;
  const bool gzip = request.accept_encoding.find("gzip") != std::string::npos;
  const auto tag = '"' + std::string(place) + (gzip ? "-gzip\"" : "\"");
  Response response{.content_type = std::string(type_of(name)),
                    .extra_headers = "ETag: " + tag + "\r\nVary: Accept-Encoding\r\n",
                    .cache_control = "public, max-age=31536000, immutable"};
  if (request.if_none_match.find(tag) != std::string::npos) {
    response.status = 304;
    return response;
  }
  if (gzip) response.extra_headers += "Content-Encoding: gzip\r\n";
  response.body = gzip ? file->gzipped : file->content;
  return response;
}

}  // namespace watchdog::monitor

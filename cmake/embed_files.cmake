# embed_files(TARGET FILE...): puts the files into the target, compressed, as api/assets.h has them, under the last part
# of their names.
function(embed_files target)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/embedded)
  file(MAKE_DIRECTORY ${out})
  set(number 0)
  foreach(path IN LISTS ARGN)
    get_filename_component(file ${path} ABSOLUTE)
    get_filename_component(name ${path} NAME)
    add_custom_command(OUTPUT ${out}/${name}.gz COMMAND gzip -9nc ${file} > ${out}/${name}.gz
                       DEPENDS ${file} VERBATIM)
    list(APPEND parts ${out}/${name}.gz)
    string(APPEND pieces "embedded_${number}: .incbin \"${out}/${name}.gz\"\nembedded_${number}_end:\n")
    string(APPEND symbols "extern const char embedded_${number}[], embedded_${number}_end[];\n")
    string(APPEND rows "    {\"${name}\", {embedded_${number}, embedded_${number}_end}},\n")
    math(EXPR number "${number} + 1")
  endforeach()
  file(CONFIGURE OUTPUT ${out}/embedded_files.cpp @ONLY CONTENT [[
#include <array>

#include "api/assets.h"

asm(R"(.section .rodata
@pieces@.previous)");
extern "C" {
@symbols@}

std::span<const watchdog::monitor::PackedFile> watchdog::monitor::packed_files() {
  static const std::array<PackedFile, @number@> files{{
@rows@  }};
  return files;
}
]])
  # Within a larger unit it would not be built again with them.
  set_source_files_properties(${out}/embedded_files.cpp PROPERTIES OBJECT_DEPENDS "${parts}"
                              SKIP_UNITY_BUILD_INCLUSION ON)
  target_sources(${target} PRIVATE ${out}/embedded_files.cpp)
endfunction()

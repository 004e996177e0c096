# unity_units(TARGET): compiles the files of TARGET in the units that unity.txt beside the CMakeLists.txt names. CMake's own
# units are the files by their order, so that one new file would change most of them.
function(unity_units target)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/unity.txt)
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
  file(STRINGS unity.txt lines REGEX "^${target} ")
  foreach(line ${lines})
    string(REGEX MATCH "^[^ ]+ ([^:]+): (.+)$" line "${line}")
    set(unit ${CMAKE_MATCH_1})
    string(REPLACE " " ";" files "${CMAKE_MATCH_2}")
    set_source_files_properties(${files} PROPERTIES UNITY_GROUP ${unit})
  endforeach()
endfunction()

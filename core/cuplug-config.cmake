# find_package(cuplug): cuplug::cuplug for programs that use plugins, cuplug::plugin for plugins, and
# the functions of cuplug-plugins.cmake, which build plugins and put them into Python packages.
# It lies in cmake/cuplug beside the library.
get_filename_component(_cuplug_lib "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
get_filename_component(_cuplug_prefix "${_cuplug_lib}/.." ABSOLUTE)

if(NOT TARGET cuplug::plugin)
  # The headers; entries alone are exported.
  add_library(cuplug::plugin INTERFACE IMPORTED)
  set_target_properties(cuplug::plugin PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${_cuplug_prefix}/include"
    INTERFACE_COMPILE_OPTIONS
      "$<$<COMPILE_LANGUAGE:C,CXX>:-fvisibility=hidden>;$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-fvisibility=hidden>")

  add_library(cuplug::cuplug SHARED IMPORTED)
  set_target_properties(cuplug::cuplug PROPERTIES
    IMPORTED_LOCATION "${_cuplug_lib}/libcuplug.so.1"
    IMPORTED_SONAME libcuplug.so.1
    INTERFACE_INCLUDE_DIRECTORIES "${_cuplug_prefix}/include")
endif()
unset(_cuplug_lib)
unset(_cuplug_prefix)
include("${CMAKE_CURRENT_LIST_DIR}/cuplug-plugins.cmake")

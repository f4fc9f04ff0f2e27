mod documentation;

-- Books whose names count with 〇, 零 and 千 (第一百零五话), behind 巻, 卷, 其の and その (巻二), or as 前編, 中編, 後編, are in that order.

-- +goose Up
-- +goose StatementBegin
create or replace function app.arabic(p_number text) returns bigint language plpgsql immutable parallel safe as $$
declare
  v_total bigint := 0;
  v_digit bigint := 0;
  v_unit integer;
begin
  for i in 1..length(p_number) loop
    v_unit := case substr(p_number, i, 1) when '十' then 10 when '百' then 100 when '千' then 1000 end;
    if v_unit is null then
      v_digit := least(v_digit * 10 + strpos('一二三四五六七八九', substr(p_number, i, 1)), 9999999);
    else
      v_total := least(v_total + greatest(v_digit, 1) * v_unit, 9999999);
      v_digit := 0;
    end if;
  end loop;
  return least(v_total + v_digit, 9999999);
end $$;
-- +goose StatementEnd

-- counted writes such numbers with digits, where a word is in front of one or a unit behind, and 上, 中, 下 as 1, 2, 3, where a
-- unit is behind or nothing beside it, and so 前, 中, 後 where they are parts (see naming.CompareFile).
-- +goose StatementBegin
create or replace function app.counted(p_name text) returns text language plpgsql immutable parallel safe as $$
declare
  v_done text := '';
  v_rest text := p_name;
  v_number text;
begin
  while v_rest <> '' loop
    v_number := substring(v_rest from '^[〇零一二三四五六七八九十百千]+');
    if v_number is null then
      v_number := substring(v_rest from '^[^〇零一二三四五六七八九十百千]+');
      v_done := v_done || v_number;
    elsif v_done ~ '(?:第|その|其[のノ之]|(?:^|[^0-9])[卷巻][ノの之]?)[ \t]*$' or substr(v_rest, length(v_number) + 1) ~ '^[ \t]*[巻卷冊册話话回章集]' then
      v_done := v_done || app.arabic(v_number);
    else
      v_done := v_done || v_number;
    end if;
    v_rest := substr(v_rest, length(v_number) + 1);
  end loop;
  for i in 1..3 loop
    v_done := regexp_replace(v_done, replace('P(?=[巻卷冊册篇編编集])|(?<=^|[\s(（\[【「/])P(?=$|[\s)）\]】」/])', 'P', substr('上中下', i, 1)), i::text, 'g');
  end loop;
  return regexp_replace(regexp_replace(v_done, '前(?=[篇編编])', '1', 'g'), '[後后](?=[篇編编])', '3', 'g');
end $$;
-- +goose StatementEnd

-- +goose StatementBegin
create or replace function app.file_order(p_key text) returns text language sql immutable parallel safe as $$
  select replace(case when p_key ~ '[上中下前後后〇零一二三四五六七八九十百千]' then app.counted(regexp_replace(p_key, '\.[^./]*$', ''))
    else regexp_replace(p_key, '\.[^./]*$', '') end, '/', E'\t');
$$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
create or replace function app.arabic(p_number text) returns bigint language plpgsql immutable parallel safe as $$
declare
  v_total bigint := 0;
  v_digit bigint := 0;
  v_unit integer;
begin
  for i in 1..length(p_number) loop
    v_unit := case substr(p_number, i, 1) when '十' then 10 when '百' then 100 end;
    if v_unit is null then
      v_digit := least(v_digit * 10 + strpos('一二三四五六七八九', substr(p_number, i, 1)), 9999999);
    else
      v_total := least(v_total + greatest(v_digit, 1) * v_unit, 9999999);
      v_digit := 0;
    end if;
  end loop;
  return least(v_total + v_digit, 9999999);
end $$;
-- +goose StatementEnd

-- +goose StatementBegin
create or replace function app.counted(p_name text) returns text language plpgsql immutable parallel safe as $$
declare
  v_done text := '';
  v_rest text := p_name;
  v_number text;
begin
  while v_rest <> '' loop
    v_number := substring(v_rest from '^[一二三四五六七八九十百]+');
    if v_number is null then
      v_number := substring(v_rest from '^[^一二三四五六七八九十百]+');
      v_done := v_done || v_number;
    elsif v_done ~ '第\s*$' or substr(v_rest, length(v_number) + 1) ~ '^\s*[巻卷冊册話话回章集]' then
      v_done := v_done || app.arabic(v_number);
    else
      v_done := v_done || v_number;
    end if;
    v_rest := substr(v_rest, length(v_number) + 1);
  end loop;
  for i in 1..3 loop
    v_done := regexp_replace(v_done, replace('P(?=[巻卷冊册篇編编集])|(?<=^|[\s(（\[【「/])P(?=$|[\s)）\]】」/])', 'P', substr('上中下', i, 1)), i::text, 'g');
  end loop;
  return v_done;
end $$;
-- +goose StatementEnd

-- +goose StatementBegin
create or replace function app.file_order(p_key text) returns text language sql immutable parallel safe as $$
  select replace(case when p_key ~ '[上中下一二三四五六七八九十百]' then app.counted(regexp_replace(p_key, '\.[^./]*$', ''))
    else regexp_replace(p_key, '\.[^./]*$', '') end, '/', E'\t');
$$;
-- +goose StatementEnd
